// SPDX-License-Identifier: Apache-2.0
//
// The operators' gRPC service (proto/admin.proto), with the standard health and reflection
// services, behind the sockets of admin_listener.h. There is one server for administrators and one
// for monitors, who only look, each with a socket of its own. The socket that a call came through
// decides what it may do, and nothing in the call does. This parses operators' messages, never
// clients'. It and resources/service.h are the only parts of the broker that use gRPC.
//
// Owner: the Broker. Start and Stop on the loop thread; requests come on gRPC's threads and reach
// the broker's state only through BrokerControl.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/admin_listener.h"
#include "broker/children/workers.h"
#include "broker/event_loop.h"
#include "broker/probe.h"
#include "broker/quotas.h"
#include "broker/resources/registry.h"
#include "broker/tenants/listeners.h"

namespace sluice::broker {

struct BrokerStatus {
  uint64_t uptime_seconds = 0;
  bool draining = false;
  std::vector<std::string> endpoints;
  std::string config_file;
  uint64_t session_limit = 0;
  std::string worker_user;
  std::string control_groups;  // As WorkerGroups has them.
  std::string control_groups_advice;
  std::string worker_sandbox;  // As DescribeLayers has it.
};

// The questions and orders of the admin service to the broker. Called on gRPC's threads:
// implementations are thread-safe and may wait for the loop thread. kCancelled when the broker
// stops meanwhile.
class BrokerControl {
 public:
  virtual ~BrokerControl() = default;
  virtual absl::StatusOr<BrokerStatus> GetStatus() = 0;
  virtual absl::StatusOr<std::vector<SessionInfo>> ListSessions() = 0;
  virtual absl::StatusOr<std::vector<ResourceInfo>> ListResources() = 0;
  virtual absl::StatusOr<std::vector<AccountQuotas>> ListAccounts() = 0;
  virtual Probe::Summary GetSnapshot() = 0;
  virtual absl::Status KillSession(uint64_t id, const std::string& reason) = 0;
  virtual absl::StatusOr<std::vector<ListenerInfo>> ListListeners() = 0;
  // Fills the path in, if there is none.
  virtual absl::Status AddListener(ListenerConfig* listener) = 0;
  virtual absl::Status RemoveListener(const std::string& tenant, bool end_sessions) = 0;
  // Returns how many sessions are left. `timeout_ms` 0 = no limit.
  virtual absl::StatusOr<uint64_t> Drain(int64_t timeout_ms) = 0;
};

class AdminServer {
 public:
  // `loop` and `control` are the caller's and outlive this.
  static absl::StatusOr<std::unique_ptr<AdminServer>> Start(EventLoop* loop,
                                                            const AdminSocket& socket,
                                                            BrokerControl* control);
  virtual ~AdminServer() = default;  // Stops it and removes the socket.
};

}  // namespace sluice::broker
