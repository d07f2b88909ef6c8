// SPDX-License-Identifier: Apache-2.0
//
// The running sessions: one worker process each, or one for several (pools.h). Starts them, listens
// to their control sockets, counts them against the policy, ends them, reaps them.
//
//   Open() -> [running] --- worker exits by itself (its client is gone) ----------> reaped
//                 |  End(): Terminate message, then SIGKILL after the grace -----> reaped
//                 |  owner's process or connection gone: as End(), by itself ----> reaped
//
// Owner: the Broker. Loop thread only, but for List, count and WaitForStats, which the admin
// service's threads call. Workers are as hostile as their clients: their messages are checked and
// shown, and nothing relies on them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "broker/children/cache_bounds.h"
#include "broker/children/child_output.h"
#include "broker/children/child_watch.h"
#include "broker/children/memory_grants.h"
#include "broker/children/pools.h"
#include "broker/children/worker_groups.h"
#include "broker/children/worker_launcher.h"
#include "broker/config/config.h"
#include "broker/config/policy.h"
#include "broker/event_loop.h"
#include "broker/os/process.h"
#include "broker/os/scoped_handle.h"
#include "broker/os/thread_checker.h"
#include "broker/os/types.h"
#include "broker/quotas.h"
#include "broker/scheduling/turn_giver.h"
#include "broker/tenants/tenant.h"
#include "proto/broker_messages.h"

namespace sluice::broker {

struct SessionRequest {
  uint64_t owner = 0;  // The connection that asked; EndOwnedBy ends what is left when it is gone.
  Tenant tenant;
  std::string process_name;  // As the client says it.
  pid_t client_pid = -1;     // For the list only; -1 for a network client.
  uint32_t flags = 0;        // Of OpenSession, checked.
};

struct OpenedSession {
  uint64_t id = 0;
  os::UniqueFd client_end;  // Of the handle channel; goes to the client.
};

// A session as an operator sees it.
struct SessionInfo {
  uint64_t id = 0;
  Tenant tenant;
  std::string process_name;
  pid_t client_pid = -1;
  pid_t worker_pid = -1;
  absl::Time started;
  bool ending = false;
  // As the worker says.
  uint64_t memory_bytes = 0;
  uint64_t object_count = 0;
  uint64_t commands_executed = 0;
  uint64_t context_count = 0;
  uint64_t imported_objects = 0;
  uint64_t shadowed_objects = 0;
  uint64_t staged_objects = 0;
  uint64_t shadows_by_semaphores = 0;
  uint64_t shadows_by_keyed_mutex = 0;
  std::string device_name;
  uint64_t pool = 0;    // 0: it has a worker of its own,
  std::string no_pool;  // and why.
  TurnGiver::Report turns;
  // By the broker's own count, where the account has a limit (memory_grants.h); else 0.
  uint64_t granted_bytes = 0;
  uint64_t account_memory_limit = 0;
};

// Of one session, in bytes; 0: none. The smaller of everybody's and the account's own.
uint64_t MemoryLimit(const LimitsConfig& limits, const Account& account);
// Of all sessions of the account, likewise. The account's own, or everybody's.
uint64_t DeviceMemoryLimit(const LimitsConfig& limits, const Account& account);
// The most memory that its devices report: the smaller of both; 0: as they do by themselves.
uint64_t ReportedMemory(const LimitsConfig& limits, const Account& account);

class Workers {
 public:
  // `on_trouble`: a worker's driver has failed, or lacks a device that its client knows.
  Workers(EventLoop* loop, Policy* policy, std::function<void()> on_ended,
          std::function<void()> on_trouble);
  ~Workers();

  // True if clients of the account may ask for a pool; the second, for processors too.
  bool MayPool(const Account& account) const;
  bool MayPoolProcessors() const { return pool_config_.cpu_devices; }

  // For sessions opened from now on. The others are the caller's and outlive this.
  void Configure(const Config& config, const WorkerLauncher* launcher, WorkerGroups* groups);
  // Called once for each session, when its worker serves its client, has ended, or takes too long.
  void SetOnStarted(std::function<void(uint64_t id)> on_started) {
    on_started_ = std::move(on_started);
  }

  absl::StatusOr<OpenedSession> Open(const SessionRequest& request);

  // False if there is no such session. Repeating it with grace 0 kills at once.
  bool End(uint64_t id, const std::string& reason, int64_t grace_ms);
  void EndOwnedBy(uint64_t owner, const std::string& reason);
  // Of those, one: nothing happens if there is no such session of that owner.
  void EndOneOwnedBy(uint64_t owner, uint64_t id, const std::string& reason);
  void EndAll(const std::string& reason, int64_t grace_ms);
  // Before the broker's end: logs and forgets workers that were killed long ago and are still
  // there, since the system holds them (for a device, perhaps).
  void GiveUp() ABSL_LOCKS_EXCLUDED(mutex_);

  // Asks every worker for its numbers. They are in List once they have come.
  void RequestStats() ABSL_LOCKS_EXCLUDED(mutex_);
  // Thread-safe: waits until all have answered the last request, but not longer than `timeout`.
  void WaitForStats(absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mutex_);

  std::vector<SessionInfo> List() const ABSL_LOCKS_EXCLUDED(mutex_);  // Thread-safe.
  size_t count() const ABSL_LOCKS_EXCLUDED(mutex_);                   // Thread-safe.

  // `domains`: of the account, whose caches count.
  void AddQuotas(const Account& account, const std::set<std::string>& domains,
                 std::vector<QuotaUse>* quotas) const;

  bool Includes(pid_t pid) const;  // True if a worker that is not reaped yet has that pid.

 private:
  struct Session {
    explicit Session(EventLoop* loop) : exit_watch(loop), output(loop, "worker") {}

    uint64_t id = 0;
    uint64_t owner = 0;
    os::ChildProcess worker;
    ChildWatch exit_watch;
    ChildOutput output;
    os::UniqueFd control;
    uint64_t pool = 0;                 // 0: it has a worker of its own.
    std::shared_ptr<void> slot;        // Of the policy's.
    std::shared_ptr<void> cache_slot;  // Of caches_.
    EventLoop::WatchId control_watch = 0;
    EventLoop::TimerId kill_timer = 0;
    EventLoop::TimerId start_timer = 0;  // 0: it has started.
    // Two for each look at the sessions, and 50 for memory of one that keeps its pace.
    RateLimiter messages{300, 150};
    RateLimiter notices{10, 1};
  };

  std::vector<std::string> Arguments(const SessionRequest& request) const;
  bool MayLog();  // One more line about a session.
  void LogLimits(uint64_t id, const WorkerGroups::End& end);
  void EndAfterGrace(Session* session, const std::string& reason);
  uint64_t NewId() const;
  void OnExit(uint64_t id, const os::ExitStatus& status) ABSL_LOCKS_EXCLUDED(mutex_);
  // A session that ended while its pool's process goes on, or with that.
  void OnPooledEnd(uint64_t id) ABSL_LOCKS_EXCLUDED(mutex_);
  // All that is there after its end but a process; how old it was, whether it was told to end.
  struct Ended {
    std::unique_ptr<Session> session;
    absl::Time started;
    bool ending = false;
  };
  Ended TakeOut(uint64_t id) ABSL_LOCKS_EXCLUDED(mutex_);
  bool EndWithin(uint64_t id, const std::string& reason, int64_t grace_ms);
  int64_t GraceOf(const Session& session) const;
  // "" if the session may be in a pool; else why not.
  std::string WhyNoPool(const SessionRequest& request) const;
  absl::Status StartWorker(const SessionRequest& request, int channel, int control,
                           Session* session, SessionInfo* info);
  absl::Status JoinPool(const SessionRequest& request, int channel, int control, Session* session,
                        SessionInfo* info);
  void OnControl(uint64_t id);
  bool HandleControl(Session* session, const void* packet, size_t size);
  // Nothing if it is no message about memory; else whether it is a good one.
  std::optional<bool> HandleMemory(uint64_t id, const void* packet, size_t size)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void SendMemory(uint64_t id, const void* message, size_t size);
  void ArmGrantTimer();
  void NoteStarted(Session* session);
  void StoreGrant(uint64_t id) ABSL_LOCKS_EXCLUDED(mutex_);
  void StoreStats(uint64_t id, const wire::WorkerStats& stats) ABSL_LOCKS_EXCLUDED(mutex_);
  void StoreStats(uint64_t id, const wire::ShadowStats& stats) ABSL_LOCKS_EXCLUDED(mutex_);
  void Violation(Session* session, const std::string& what);
  void StopListening(Session* session) ABSL_LOCKS_EXCLUDED(mutex_);

  // `id`: of the session, or of the pool. Without a `channel` it is a pool.
  absl::StatusOr<os::ChildProcess> Launch(uint64_t id, const SessionRequest& request,
                                          std::optional<int> channel, int control, int output);

  os::ThreadChecker thread_;
  TurnGiver turns_;
  MemoryGrants grants_;
  EventLoop::TimerId grant_timer_ = 0;
  CacheBounds caches_;
  EventLoop* const loop_;
  Policy* const policy_;
  const std::function<void()> on_ended_;
  const std::function<void()> on_trouble_;
  std::function<void(uint64_t id)> on_started_;

  // Loop thread only.
  const WorkerLauncher* launcher_ = nullptr;
  WorkerGroups* groups_ = nullptr;
  TurnsConfig::Mode turns_mode_ = TurnsConfig::Mode::kAuto;
  RateLimiter log_limiter_{2000, 50};  // Sessions have three lines each: a crowd's are all logged.
  LimitsConfig limits_;
  bool sync_ = false;
  PoolConfig pool_config_;
  Pools pools_;
  int64_t kill_grace_ms_ = 1000;
  std::map<uint64_t, std::unique_ptr<Session>> sessions_;

  mutable absl::Mutex mutex_;
  std::map<uint64_t, SessionInfo> infos_ ABSL_GUARDED_BY(mutex_);
  std::set<uint64_t> stats_awaited_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace sluice::broker
