// SPDX-License-Identifier: Apache-2.0
// A program's daemons: the text of SLUICE_ENDPOINT or of --endpoint, and what holds without it. The
// one rule for the OpenCL driver, libsluice and sluicectl. Thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace sluice {

// One entry of the text.
struct EndpointAddress {
  enum class Kind { kLocal, kRemote };
  Kind kind;
  std::string target;  // The socket's name; or HOST:PORT, dns:///NAME:PORT.
  std::string text;    // As written: "unix:/ABSOLUTE/PATH", say.

  bool local() const { return kind == Kind::kLocal; }
  bool operator==(const EndpointAddress& other) const;  // Of the same daemon, however written.
};

// Each once, in the order of their first mention. An error names `source`, the entry and what is
// allowed. An empty text is the default (a socket of the user, else of the system); one that names
// none, of commas and spaces, is refused. With `refused`, entries that are none are told there and
// left out.
absl::StatusOr<std::vector<EndpointAddress>> ParseEndpoints(
    std::string_view text, std::vector<absl::Status>* refused = nullptr,
    std::string_view source = "SLUICE_ENDPOINT");

}  // namespace sluice
