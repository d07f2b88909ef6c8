// SPDX-License-Identifier: Apache-2.0
//
// The broker's parts and their life, in order:
//
//   start  lock -> parent directories -> listener (or the service manager's) -> admin socket
//          -> probe -> gateways; READY once the probe has a result
//   serve  the event loop
//   drain  SIGTERM, SIGINT or Drain: no new sessions; when the last has ended, or the drain
//          timeout is over and the workers are ended: stop. A second SIGTERM ends the workers at
//          once.
//   stop   admin -> resources -> gateways -> connections -> sockets and lock removed
//
// A broker that is killed leaves its workers alone: running sessions go on.
//
// Owner: main. Main thread only, which is the loop thread; gRPC's threads call the methods of
// BrokerControl.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/admin_service.h"
#include "broker/children/gateway_link.h"
#include "broker/children/worker_groups.h"
#include "broker/children/worker_launcher.h"
#include "broker/children/workers.h"
#include "broker/client_connections.h"
#include "broker/client_socket.h"
#include "broker/config/config.h"
#include "broker/config/policy.h"
#include "broker/device_probes.h"
#include "broker/event_loop.h"
#include "broker/instance.h"
#include "broker/loop_calls.h"
#include "broker/os/stop_signals.h"
#include "broker/resources/hub.h"
#include "broker/resources/service.h"
#include "broker/session_opener.h"
#include "broker/shutdown.h"
#include "broker/tenants/listeners.h"

namespace sluice::broker {

class Broker final : public BrokerControl {
 public:
  using ConfigLoader = std::function<absl::StatusOr<Config>()>;

  // `reload` is called on SIGHUP. SIGTERM, SIGINT and SIGHUP must be blocked in every thread.
  static absl::StatusOr<std::unique_ptr<Broker>> Create(Config config, ConfigLoader reload);
  ~Broker() override;

  void Run();  // Until it has stopped.

  // BrokerControl. Thread-safe.
  absl::StatusOr<BrokerStatus> GetStatus() override;
  absl::StatusOr<std::vector<SessionInfo>> ListSessions() override;
  absl::StatusOr<std::vector<ResourceInfo>> ListResources() override;
  absl::StatusOr<std::vector<AccountQuotas>> ListAccounts() override;
  Probe::Summary GetSnapshot() override;
  absl::Status KillSession(uint64_t id, const std::string& reason) override;
  absl::StatusOr<std::vector<ListenerInfo>> ListListeners() override;
  absl::Status AddListener(ListenerConfig* listener) override;
  absl::Status RemoveListener(const std::string& tenant, bool end_sessions) override;
  absl::StatusOr<uint64_t> Drain(int64_t timeout_ms) override;

 private:
  Broker(Config config, ConfigLoader reload, InstanceLock lock, std::unique_ptr<EventLoop> loop,
         std::unique_ptr<WorkerGroups> groups, WorkerLauncher launcher);

  absl::Status Start();
  absl::Status OpenSockets();
  void StartGateways();
  bool IsHelper(pid_t pid) const;  // A gateway, the allocator, the probe.
  absl::Status WatchSignals();
  void OnSignal();
  void Reload();
  void ConfigureParts();  // From config_ and launcher_.
  void OnProbed();

  // Constant after construction.
  const ConfigLoader reload_;
  const InstanceLock lock_;
  const int64_t started_ms_;

  // Loop thread only.
  Config config_;
  const std::unique_ptr<EventLoop> loop_;
  const std::unique_ptr<WorkerGroups> groups_;
  std::unique_ptr<WorkerLauncher> launcher_;
  Policy policy_;
  Workers workers_;
  DeviceProbes probes_;
  SessionOpener opener_;
  ResourceHub resources_;
  Shutdown shutdown_;
  ClientConnections connections_;
  Listeners listeners_;
  std::unique_ptr<ClientSocket> client_socket_;
  std::vector<std::unique_ptr<GatewayLink>> gateways_;
  std::unique_ptr<ResourceServer> resource_server_;
  std::unique_ptr<AdminServer> admin_;
  std::unique_ptr<AdminServer> monitor_;
  std::unique_ptr<os::StopSignals> signals_;
  EventLoop::WatchId signal_watch_ = 0;
  bool ready_ = false;

  LoopCalls calls_;  // Thread-safe.
};

}  // namespace sluice::broker
