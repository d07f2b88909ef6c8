// SPDX-License-Identifier: Apache-2.0
//
// Which container a local client's process lives in, and who answers for it, as the system says. On
// Linux a container is a user or PID namespace that is not this process's own; on Windows an
// AppContainer. Thread-safe.
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
    kHere,       // Where this process is.
    kContainer,  // In the one of `key`.
    kUnseen,     // The system does not show it; `why` says the reason.
  };
  Place place = Place::kHere;
  // The peer's own user, or the one who owns the outermost user namespace that it lives in below
  // this process's: whoever made the others is that user.
  uid_t owner = static_cast<uid_t>(-1);
  // No other container's while `held` is open; for good if `lasting`.
  std::string key;
  bool lasting = false;
  std::vector<os::UniqueFd> held;
  std::string why;
};

// kUnavailable: the process that connected has ended. kPermissionDenied: its user has no number
// here, so that nobody can say which of many it is.
absl::StatusOr<PeerContainer> FindPeerContainer(const os::PeerIdentity& peer);

}  // namespace sluice::broker
