// SPDX-License-Identifier: Apache-2.0
//
// Finds out which tenant a local client is (tenant.h): by the listener that it came by, and by what
// the system says of its process (peer_container.h).
//
// A container has no name of its own that would last: the kernel gives the numbers of a namespace
// that has gone to the next one. So each gets a random name here, which holds while this has its
// namespaces open: as long as it has connections. After that, those used last stay open, a few of
// each account. A client from a forgotten container, or of the next daemon, finds a cold cache, and
// never another's.
//
// Owner: ClientConnections. Loop thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "broker/config/listener_config.h"
#include "broker/os/peer_identity.h"
#include "broker/tenants/peer_container.h"
#include "broker/tenants/tenant.h"

namespace sluice::broker {

class TenantFinder {
 public:
  struct Found {
    Tenant tenant;
    uid_t owner = static_cast<uid_t>(-1);  // The user who answers for it.
    // To be kept while anything of the client's is there.
    std::shared_ptr<const void> container;
  };

  // `listener` is null for the default socket. kUnavailable: the client is gone.
  // kPermissionDenied: as FindPeerContainer.
  absl::StatusOr<Found> Find(const os::PeerIdentity& peer, const ListenerConfig* listener);
  // As it follows from what is known of the peer. For Find, and tests.
  Found Name(const os::PeerIdentity& peer, PeerContainer container, const ListenerConfig* listener);

  // Kept open without connections: of one account, and of all.
  static constexpr size_t kMostOfAccount = 16;
  static constexpr size_t kMost = 128;

  size_t container_count() const { return containers_.size(); }

 private:
  struct Container {
    std::string name;
    std::string account;
    uint64_t last_used = 0;
    std::shared_ptr<const void> held;
  };

  std::string NameOf(PeerContainer container, const std::string& account,
                     std::shared_ptr<const void>* held);
  void MakeRoom(const std::string& account);

  std::map<std::string, Container> containers_;  // By key.
  uint64_t uses_ = 0;
  bool told_unseen_ = false;
};

}  // namespace sluice::broker
