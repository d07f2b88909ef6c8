// SPDX-License-Identifier: Apache-2.0
//
// Finds the container of a local client's process, and the user who answers for it, as the system
// says. On Linux a container is a user or PID namespace that is not this process's own; on Windows
// an AppContainer. Thread-safe.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "broker/os/peer_identity.h"
#include "broker/os/scoped_handle.h"
#include "broker/os/types.h"

namespace sluice::broker {

struct PeerContainer {
  enum class Place {
    kHere,       // In no container, or in this process's own.
    kContainer,  // In the one of `key`.
    kUnseen,     // The system does not show it; `why` says the reason.
  };
  Place place = Place::kHere;
  // The peer's own user; in user namespaces of its own, the owner of the outermost one below this
  // process's, who has made the others.
  uid_t owner = static_cast<uid_t>(-1);
  // Names this container, and no other while `held` is open; for good if `lasting`.
  std::string key;
  bool lasting = false;
  std::vector<os::UniqueFd> held;
  std::string why;
};

// kUnavailable: the process that connected has ended. kPermissionDenied: its user has no number
// here, so that nobody can say which of many it is.
absl::StatusOr<PeerContainer> FindPeerContainer(const os::PeerIdentity& peer);

}  // namespace sluice::broker
