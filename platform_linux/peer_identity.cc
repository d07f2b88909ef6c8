// SPDX-License-Identifier: Apache-2.0
#include "broker/os/peer_identity.h"

#include <sys/socket.h>

#include <unistd.h>

#include <cerrno>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "platform_linux/errno_status.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

namespace sluice::os {

std::string UserName(uid_t uid) { return absl::StrCat("uid:", uid); }

std::optional<uid_t> ParseUser(const std::string& text) {
  uint32_t uid;
  if (!absl::SimpleAtoi(text, &uid) || uid == static_cast<uid_t>(-1)) return std::nullopt;
  return uid;
}

uid_t OwnUser() { return ::geteuid(); }

absl::StatusOr<PeerIdentity> GetPeerIdentity(int socket) {
  ucred credentials = {};
  socklen_t length = sizeof(credentials);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) {
    return ErrnoStatus(errno, "SO_PEERCRED");
  }
  // The kernel answers -1 for a socket without a peer. Such a uid would match "nobody is limited".
  if (length != sizeof(credentials) || credentials.uid == static_cast<uid_t>(-1)) {
    return absl::UnavailableError("the kernel does not know the peer");
  }
  PeerIdentity identity;
  identity.uid = credentials.uid;
  identity.gid = credentials.gid;
  identity.pid = credentials.pid;
  // 0 means a process of another pid namespace; getsid would take it for this process.
  if (credentials.pid > 0) {
    identity.session_leader = ::getsid(credentials.pid);
    // The process is gone. A fork of it may still have the socket, and nobody can say whose that
    // is.
    if (identity.session_leader < 0 && errno == ESRCH)
      return absl::UnavailableError("the process that connected has ended");
  }
  int pidfd = -1;
  length = sizeof(pidfd);
  // Fails before Linux 6.5, and for a peer that is gone already: then there is simply no pidfd.
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &length) == 0) {
    identity.pidfd.reset(pidfd);
  }
  return identity;
}

}  // namespace sluice::os
