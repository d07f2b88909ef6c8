// SPDX-License-Identifier: Apache-2.0
//
// Who is at the other end of a local socket, as the kernel says it (never as a message says it).
// uid and gid are those of the process that connected and may authorise. The pid may only be
// logged, since a pid looked up afterwards can be another process; `pidfd` (Linux 6.5 and later,
// else invalid) names the process itself. Thread-safe.
#pragma once

#include <sys/types.h>

#include "absl/status/statusor.h"
#include "broker/os/scoped_handle.h"

namespace sluice {

struct PeerIdentity {
  uid_t uid = static_cast<uid_t>(-1);
  gid_t gid = static_cast<gid_t>(-1);
  pid_t pid = -1;
  UniqueFd pidfd;
};

absl::StatusOr<PeerIdentity> GetPeerIdentity(int socket);

}  // namespace sluice
