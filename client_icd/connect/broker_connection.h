// SPDX-License-Identifier: Apache-2.0
// The client's connection to a local broker: says Hello, takes the platform snapshot, and asks for
// sessions. The broker's messages are checked for form; its descriptors are verified by whoever
// maps them. Owned by Endpoint, which serialises calls. Every wait is bounded.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "broker/base/peer_version.h"
#include "broker/os/descriptor_identity.h"
#include "client_icd/session/session.h"
#include "proto/broker_messages.h"
#include "proto/memory_messages.h"
#include "proto/pool_messages.h"

namespace sluice::client {

class BrokerConnection {
 public:
  // Connects and says Hello. `snapshot` gets the serialised PlatformSnapshot, empty if the daemon
  // has no device; `problem`, if it is not null, then gets the daemon's reason.
  static absl::StatusOr<std::unique_ptr<BrokerConnection>> Connect(const std::string& path,
                                                                   std::string* snapshot,
                                                                   std::string* problem = nullptr);

  // Says if the session may be in a worker with others of this user's (proto/pool_messages.h).
  enum class Sharing { kMay, kNeedsWorker };
  // Has a worker started, and returns the transport to it.
  absl::StatusOr<OpenedTransport> OpenSession(Sharing sharing);
  // The daemon has pools, of processors too: contexts that cannot be in one need another session.
  bool has_pools() const { return has_pools_; }
  bool has_pools_of_processors() const { return has_pools_of_processors_; }
  // Asks for the end of a session's worker, if the daemon can do that for a client; there is no
  // answer.
  void CloseSession(uint64_t id);

  // The daemon's configuration lets its clients have resources.
  bool shares_resources() const { return shares_resources_; }
  // The most that its devices may say of their memory; 0: whatever they do.
  uint64_t memory_bytes() const { return memory_bytes_; }
  // Empty if it tells none (broker/base/peer_version.h).
  const std::string& daemon_version() const { return daemon_version_; }
  // False once the application has closed our socket.
  bool there() const { return socket_.there(); }

  // In the child of a fork.
  void CloseInForkedChild();

 private:
  BrokerConnection(os::UniqueFd socket, std::string_view features)
      : socket_(std::move(socket)),
        closes_sessions_(wire::HasFeature(features, wire::kFeatureCloseSession)),
        has_pools_(wire::HasFeature(features, wire::kFeaturePools)),
        has_pools_of_processors_(wire::HasFeature(features, wire::kFeaturePoolsOfProcessors)),
        shares_resources_(wire::HasFeature(features, wire::kFeatureSharesResources)),
        memory_bytes_(wire::MemoryIn(features)),
        daemon_version_(VersionIn(features)) {}

  os::GuardedFd socket_;
  const bool closes_sessions_;  // The daemon knows CloseSession.
  const bool has_pools_;
  const bool has_pools_of_processors_;
  const bool shares_resources_;
  const uint64_t memory_bytes_;
  const std::string daemon_version_;
  uint64_t next_nonce_ = 1;
};

}  // namespace sluice::client
