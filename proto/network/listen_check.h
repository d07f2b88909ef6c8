// SPDX-License-Identifier: Apache-2.0
//
// Checks that this process can listen where it is told to, before gRPC tries: so a person reads the
// system's reason, not gRPC's. Plain functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace sluice::wire {

enum class ListenCheck {
  kAddresses,  // The host has an address, and it is this machine's.
  kPorts,      // And the port can be had.
};

// Exit code of a gateway's `--check` where an address that is not there yet is all that is wrong.
inline constexpr int kExitNotYet = 3;

// Without what an earlier one serves too: gRPC takes 0.0.0.0 and [::] both for all of IPv4 and
// IPv6.
std::vector<std::string> DistinctAddresses(const std::vector<std::string>& listen);

// The ports of addresses that the broker has checked.
std::vector<uint16_t> PortsOf(const std::vector<std::string>& listen);

// An error names the address, what is wrong and what to do. A port that is in use is asked for
// again until `patience` is over: the gateway of a daemon that was killed a moment ago gives it up.
// Unavailable: time may mend all of it, as at boot, when a host's address or the name server comes
// after the daemon.
absl::Status CheckListening(const std::vector<std::string>& listen, ListenCheck check,
                            absl::Duration patience);

}  // namespace sluice::wire
