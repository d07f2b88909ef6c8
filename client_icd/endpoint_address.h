// SPDX-License-Identifier: Apache-2.0
// Where a program's daemons are: the text of SLUICE_ENDPOINT, and what holds without it. Shared by
// the OpenCL driver and libsluice. Thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace sluice {

// One entry of SLUICE_ENDPOINT.
struct EndpointAddress {
  enum class Kind { kLocal, kRemote };
  Kind kind;
  std::string target;  // The socket's path; or HOST:PORT, dns:///NAME:PORT.

  bool operator==(const EndpointAddress& other) const;
};

// Each once, in the order of their first mention. An error names the entry and what is allowed. An
// empty text is the default (a socket of the user, else of the system); one that names none, of
// commas and spaces, is refused. With `refused`, entries that are none are told there and left out.
absl::StatusOr<std::vector<EndpointAddress>> ParseEndpoints(
    std::string_view text, std::vector<absl::Status>* refused = nullptr);

}  // namespace sluice
