// SPDX-License-Identifier: Apache-2.0
//
// The process at the other end of a local socket, as the kernel identifies it (a message never
// does). uid and gid are those of the process that connected and may authorise. The pid may only be
// logged, since a pid looked up afterwards can be another process; `pidfd` (Linux 6.5 and later,
// else invalid) names the process itself. Thread-safe.
//
// The broker uses the pid for one more question: whether the process is, or descends from, one of
// its own workers (`session_leader`, as setsid makes them). A wrong answer there harms nobody.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "broker/os/scoped_handle.h"
#include "broker/os/types.h"

namespace sluice::os {

// A user as limits are counted for and lists show it: "uid:1000"; on Windows "sid:S-1-5-...".
std::string UserName(uid_t uid);

// Parses what the configuration may have in place of a user's name: a number; on Windows a SID.
std::optional<uid_t> ParseUser(const std::string& text);

// This process's own.
uid_t OwnUser();

struct PeerIdentity {
  uid_t uid = static_cast<uid_t>(-1);
  gid_t gid = static_cast<gid_t>(-1);
  pid_t pid = -1;
  pid_t session_leader = -1;  // Nobody: the system does not know, or has no such thing.
  UniqueFd pidfd;
};

absl::StatusOr<PeerIdentity> GetPeerIdentity(int socket);

}  // namespace sluice::os
