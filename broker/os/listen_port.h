// SPDX-License-Identifier: Apache-2.0
//
// Finds out whether this process could listen on a TCP port, by binding to it for a moment: for
// messages that help a person. Thread-safe.
#pragma once

#include <string>

namespace sluice::os {

enum class PortState {
  kFree,
  kInUse,
  kAbsent,   // The host has no address, or none that is this machine's.
  kRefused,  // Anything else.
};

struct PortAnswer {
  PortState state = PortState::kFree;
  std::string reason;  // The system's, and what to do about it; empty for kFree.
};

// Tries all addresses of `host` (a name, or numbers without brackets). Those that this machine does
// not have are ignored if it has another. "::" takes IPv4 as well. Port "0" is any port.
PortAnswer TryListening(const std::string& host, const std::string& port);

}  // namespace sluice::os
