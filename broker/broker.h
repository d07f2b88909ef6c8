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
// Owner: main. Main thread only, which is the loop thread; the BrokerControl methods are for
// gRPC's.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "broker/admin_service.h"
#include "broker/admission.h"
#include "broker/children/gateway_link.h"
#include "broker/children/worker_groups.h"
#include "broker/children/worker_launcher.h"
#include "broker/children/workers.h"
#include "broker/config/config.h"
#include "broker/config/policy.h"
#include "broker/event_loop.h"
#include "broker/instance.h"
#include "broker/os/stop_signals.h"
#include "broker/probe.h"
#include "broker/probe_schedule.h"
#include "broker/resources/hub.h"
#include "broker/resources/service.h"
#include "broker/session_opener.h"
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
  bool IsHelper(pid_t pid) const;  // A gateway, the allocator, the probe.
  absl::StatusOr<os::UniqueFd> TakeOrOpenListener();
  absl::Status WatchSignals();
  void OnSignal();
  void OnTerminate();
  void Reload();
  void StartProbe();
  void PlanProbe(std::optional<int64_t> delay_ms);  // Nothing: no probe is needed.
  void WatchMemory();
  void OnProbeDone();
  void OnSessionEnded();
  void BeginDrain(int64_t timeout_ms);  // 0 = no limit.
  void EndWorkers(const char* reason, int64_t grace_ms);
  void TellServiceManager(const std::string& state);

  // Runs `task` on the loop thread and waits for it. kCancelled if the broker stops first.
  absl::Status RunOnLoop(std::function<void()> task) ABSL_LOCKS_EXCLUDED(mutex_);

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
  Probe probe_;
  ProbeSchedule probe_schedule_;
  EventLoop::TimerId probe_timer_ = 0;
  bool probe_again_ = false;    // Start another when this one has ended.
  uint64_t probed_memory_ = 0;  // MachineMemoryBytes, when the probe began.
  SessionOpener opener_;
  ResourceHub resources_;
  Admission admission_;
  Listeners listeners_;
  std::vector<std::unique_ptr<GatewayLink>> gateways_;
  std::unique_ptr<ResourceServer> resource_server_;
  std::unique_ptr<AdminServer> admin_;
  std::unique_ptr<AdminServer> monitor_;
  std::unique_ptr<os::StopSignals> signals_;
  EventLoop::WatchId signal_watch_ = 0;
  EventLoop::TimerId drain_timer_ = 0;
  EventLoop::TimerId give_up_timer_ = 0;
  std::string listens_at_;  // Of the configuration's socket, or the service manager's.
  bool owns_socket_file_ = false;
  bool old_places_linked_ = false;
  bool ready_ = false;
  bool told_to_stop_ = false;

  absl::Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace sluice::broker
