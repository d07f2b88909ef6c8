// SPDX-License-Identifier: Apache-2.0
#include "broker/children/workers.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "broker/base/check.h"
#include "broker/base/log.h"
#include "broker/os/close_elsewhere.h"
#include "broker/os/local_socket.h"
#include "broker/os/random.h"
#include "proto/memory_messages.h"
#include "proto/pool_messages.h"

namespace sluice::broker {
namespace {

constexpr int kSigKill =
    9;  // From an operator, or the kernel for want of memory: no driver's fault.
constexpr int64_t kLongStartMs = 1'000;       // Under load: then the next one begins, too.
constexpr int kWorkerMessagesPerWakeUp = 16;  // Then the other descriptors get their turn.

}  // namespace

Workers::Workers(EventLoop* loop, Policy* policy, std::function<void()> on_ended,
                 std::function<void()> on_trouble)
    : grants_({[this](uint64_t id, uint64_t serial, uint64_t bytes) {
                 auto grant = wire::MakeMessage<wire::GrantMemory>();
                 grant.serial = serial;
                 grant.bytes = bytes;
                 SendMemory(id, &grant, sizeof(grant));
                 StoreGrant(id);
               },
               [this](uint64_t id) {
                 const auto spare = wire::MakeMessage<wire::SpareMemory>();
                 SendMemory(id, &spare, sizeof(spare));
               }}),
      caches_(loop),
      loop_(loop),
      policy_(policy),
      on_ended_(std::move(on_ended)),
      on_trouble_(std::move(on_trouble)),
      pools_(loop, [this](uint64_t pool, const os::ExitStatus& status,
                          const std::set<uint64_t>& sessions) {
        turns_.Remove(pool);
        if (const WorkerGroups::End end = groups_->Remove(pool);
            !end.memory.empty() || end.refused_processes != 0) {
          LogLimits(pool, end);
        }
        for (const uint64_t id : sessions) OnPooledEnd(id);
        if (!sessions.empty() && status.signal != 0 && status.signal != kSigKill) on_trouble_();
      }) {}

Workers::~Workers() {
  SLUICE_CHECK(sessions_.empty());
  pools_.Stop();
  loop_->CancelTimer(&grant_timer_);
}

void Workers::Configure(const Config& config, const WorkerLauncher* launcher,
                        WorkerGroups* groups) {
  thread_.Assert();
  launcher_ = launcher;
  groups_ = groups;
  limits_ = config.limits;
  sync_ = config.worker.sync;
  kill_grace_ms_ = config.kill_grace_ms;
  turns_.Configure(config.turns, groups->DividesProcessors());
  turns_mode_ = config.turns.mode;
  pool_config_ = config.pool;
  pools_.Configure(config.pool);
  caches_.Configure(config, launcher->users().CacheRoot());
}

uint64_t Workers::NewId() const {
  uint64_t id = 0;
  while (id == 0 || sessions_.contains(id)) {
    SLUICE_CHECK(os::FillRandom(&id, sizeof(id)).ok());
  }
  return id;
}

absl::StatusOr<OpenedSession> Workers::Open(const SessionRequest& request) {
  thread_.Assert();
  absl::StatusOr<std::pair<os::UniqueFd, os::UniqueFd>> channel = os::CreateSocketPair();
  if (!channel.ok()) return channel.status();
  absl::StatusOr<std::pair<os::UniqueFd, os::UniqueFd>> control = os::CreateSocketPair();
  if (!control.ok()) return control.status();
  if (absl::Status set = os::SetNonBlocking(control->first.get(), true); !set.ok()) return set;
  os::RefuseDescriptors(control->first.get());

  auto session = std::make_unique<Session>(loop_);
  session->id = NewId();
  session->owner = request.owner;
  session->control = std::move(control->first);
  SessionInfo info;
  info.no_pool = WhyNoPool(request);
  const absl::Status started =
      info.no_pool.empty()
          ? JoinPool(request, channel->second.get(), control->second.get(), session.get(), &info)
          : StartWorker(request, channel->second.get(), control->second.get(), session.get(),
                        &info);
  if (!started.ok()) return started;

  const uint64_t id = session->id;
  session->control_watch = loop_->Watch(session->control.get(), [this, id] { OnControl(id); });
  info.id = id;
  info.tenant = request.tenant;
  info.process_name = request.process_name;
  info.client_pid = request.client_pid;
  info.started = absl::Now();
  if (MayLog()) {
    Log(LogLevel::kInfo, "broker", "session opened",
        {{"session", HexId(id)},
         {"identity", request.tenant.user},
         {"account", request.tenant.account.name},
         {"domain", request.tenant.domain.name},
         {"process", request.process_name},
         {"client_pid", request.client_pid},
         {"worker_pid", info.worker_pid}});
  }
  // Where there are none, there is nothing to say of them.
  if (MayPool(request.tenant.account) && MayLog()) {
    Log(LogLevel::kInfo, "broker",
        info.pool != 0 ? "session is in a pool" : "session has a worker of its own",
        {{"session", HexId(id)}, {"pool", HexId(info.pool)}, {"reason", info.no_pool}});
  }
  session->slot = policy_->SessionOpened(request.tenant.account);
  const uint64_t memory_limit = DeviceMemoryLimit(limits_, request.tenant.account);
  if (memory_limit != 0) grants_.Add(id, request.tenant.account.name, memory_limit);
  info.account_memory_limit = memory_limit;
  session->cache_slot =
      caches_.SessionOpened(launcher_->users().CacheFolderOf(request.tenant.domain.name));
  session->start_timer = loop_->AddTimer(kLongStartMs, [this, id] {
    sessions_[id]->start_timer = 0;
    if (on_started_) on_started_(id);
  });
  sessions_[id] = std::move(session);
  {
    absl::MutexLock lock(&mutex_);
    infos_[id] = std::move(info);
  }
  return OpenedSession{id, std::move(channel->first)};
}

Workers::Ended Workers::TakeOut(uint64_t id) {
  const auto found = sessions_.find(id);
  SLUICE_CHECK(found != sessions_.end());
  Ended ended;
  ended.session = std::move(found->second);
  sessions_.erase(found);
  NoteStarted(ended.session.get());
  grants_.Remove(id, MonotonicMs());
  ArmGrantTimer();
  StopListening(ended.session.get());
  loop_->CancelTimer(&ended.session->kill_timer);
  absl::MutexLock lock(&mutex_);
  const auto info = infos_.extract(id);
  ended.started = info.mapped().started;
  ended.ending = info.mapped().ending;
  return ended;
}

void Workers::OnPooledEnd(uint64_t id) {
  if (!sessions_.contains(id)) return;
  const Ended ended = TakeOut(id);
  pools_.Leave(ended.session->pool, id);
  if (MayLog()) {
    Log(LogLevel::kInfo, "broker", "session ended",
        {{"session", HexId(id)},
         {"pool", HexId(ended.session->pool)},
         {"seconds", absl::ToInt64Seconds(absl::Now() - ended.started)}});
  }
  on_ended_();
}

void Workers::OnExit(uint64_t id, const os::ExitStatus& status) {
  OnControl(id);  // Reads its last message: why it ended.
  const Ended ended = TakeOut(id);
  turns_.Remove(id);
  const WorkerGroups::End end = groups_->Remove(id);
  ended.session->output.Finish();
  const bool ending = ended.ending;
  const bool clean = status.signal == 0 && status.code == 0;
  if (!end.memory.empty() || end.refused_processes != 0) LogLimits(id, end);
  if (MayLog()) {
    Log(clean || ending ? LogLevel::kInfo : LogLevel::kWarning, "broker", "session ended",
        {{"session", HexId(id)},
         {"worker", status.Describe()},
         {"seconds", absl::ToInt64Seconds(absl::Now() - ended.started)}});
  }
  if (!ending && status.signal != 0 && status.signal != kSigKill) on_trouble_();
  on_ended_();
}

void Workers::LogLimits(uint64_t id, const WorkerGroups::End& end) {
  if (!MayLog()) return;
  if (!end.memory.empty()) {
    Log(LogLevel::kWarning, "broker", "a worker was ended for want of memory",
        {{"session", HexId(id)}, {"reason", end.memory}});
  }
  if (end.refused_processes != 0) {
    Log(LogLevel::kWarning, "broker", "a worker was refused more processes or threads",
        {{"session", HexId(id)},
         {"times", end.refused_processes},
         {"reason", "its limit or its account's (processes_per_worker, processes_per_account)"}});
  }
}

bool Workers::MayLog() {
  if (!log_limiter_.Allow(MonotonicMs())) return false;
  if (const uint64_t left_out = log_limiter_.TakeSuppressed(); left_out != 0) {
    Log(LogLevel::kWarning, "broker", "too many lines about sessions", {{"suppressed", left_out}});
  }
  return true;
}

void Workers::StopListening(Session* session) {
  loop_->Unwatch(&session->control_watch);
  os::CloseElsewhere(std::move(session->control), session->slot);
  absl::MutexLock lock(&mutex_);
  stats_awaited_.erase(session->id);
}

void Workers::OnControl(uint64_t id) {
  for (int i = 0; i < kWorkerMessagesPerWakeUp; ++i) {
    const auto found = sessions_.find(id);
    if (found == sessions_.end() || !found->second->control.valid()) return;
    Session* session = found->second.get();
    char packet[wire::kMaxBrokerMessageBytes];
    const absl::StatusOr<size_t> size =
        os::ReceiveMessage(session->control.get(), packet, sizeof(packet), nullptr, 0);
    if (absl::IsUnavailable(size.status())) return;
    // The peer of a socket that was hung up.
    if (absl::IsAborted(size.status()) && session->pool != 0) return OnPooledEnd(id);
    if (!size.ok()) return Violation(session, std::string(size.status().message()));
    if (*size == 0 && session->pool != 0) return OnPooledEnd(id);
    if (*size == 0) return StopListening(session);  // The worker is about to end.
    if (!session->messages.Allow(MonotonicMs())) {
      return Violation(session, "control messages faster than 150 a second");
    }
    if (!HandleControl(session, packet, *size)) {
      return Violation(session, "malformed control message");
    }
  }
}

std::optional<bool> Workers::HandleMemory(uint64_t id, const void* packet, size_t size) {
  const int64_t now_ms = MonotonicMs();
  wire::WantMemory want;
  wire::MemoryReturned returned;
  bool good = false;
  if (wire::ParseMessage(packet, size, &want)) {
    good = want.ahead <= 1 && want.reserved == 0 &&
           grants_.Want(id, want.serial, want.bytes, want.ahead != 0, now_ms);
  } else if (wire::ParseMessage(packet, size, &returned)) {
    good = grants_.Return(id, returned.bytes, now_ms);
  } else {
    return std::nullopt;
  }
  StoreGrant(id);
  ArmGrantTimer();
  return good;
}

// A worker that does not read gets no message, and keeps what it has.
void Workers::SendMemory(uint64_t id, const void* message, size_t size) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end() || !found->second->control.valid()) return;
  os::SendMessage(found->second->control.get(), message, size).IgnoreError();
}

void Workers::NoteStarted(Session* session) {
  if (session->start_timer == 0) return;
  loop_->CancelTimer(&session->start_timer);
  // Not from within: it may start another.
  loop_->Post([this, id = session->id] {
    if (on_started_) on_started_(id);
  });
}

void Workers::ArmGrantTimer() {
  loop_->CancelTimer(&grant_timer_);
  const std::optional<int64_t> due_ms = grants_.NextDueMs();
  if (!due_ms.has_value()) return;
  grant_timer_ = loop_->AddTimer(std::max<int64_t>(*due_ms - MonotonicMs(), 0), [this] {
    grant_timer_ = 0;
    grants_.AdvanceTo(MonotonicMs());
    ArmGrantTimer();
  });
}

void Workers::StoreGrant(uint64_t id) {
  absl::MutexLock lock(&mutex_);
  const auto info = infos_.find(id);
  if (info != infos_.end()) info->second.granted_bytes = grants_.GrantedTo(id);
}

bool Workers::HandleControl(Session* session, const void* packet, size_t size) {
  wire::WorkerReady ready;
  if (wire::ParseMessage(packet, size, &ready)) {
    NoteStarted(session);
    return true;
  }
  if (const std::optional<bool> memory = HandleMemory(session->id, packet, size)) return *memory;
  wire::WorkerStats stats;
  if (wire::ParseMessage(packet, size, &stats)) {
    if (!wire::IsTerminated(stats.device_name)) return false;
    StoreStats(session->id, stats);
    return true;
  }
  wire::ShadowStats shadows;
  if (wire::ParseMessage(packet, size, &shadows)) {
    StoreStats(session->id, shadows);
    return true;
  }
  wire::WorkerNotice notice;
  if (!wire::ParseMessage(packet, size, &notice) || !wire::IsTerminated(notice.text)) return false;
  LogLevel level = LogLevel::kInfo;
  std::string_view kind = "info";
  switch (static_cast<wire::WorkerNoticeKind>(notice.kind)) {
    case wire::WorkerNoticeKind::kInfo:
      break;
    case wire::WorkerNoticeKind::kViolation:
      level = LogLevel::kWarning;
      kind = "violation";
      break;
    case wire::WorkerNoticeKind::kDriverError:
      level = LogLevel::kWarning;
      kind = "driver";
      on_trouble_();
      break;
    default:
      return false;
  }
  if (!session->notices.Allow(MonotonicMs())) return true;
  Log(level, "worker", notice.text,
      {{"session", HexId(session->id)},
       {"kind", kind},
       {"suppressed", session->notices.TakeSuppressed()}});
  return true;
}

void Workers::StoreStats(uint64_t id, const wire::WorkerStats& stats) {
  absl::MutexLock lock(&mutex_);
  SessionInfo& info = infos_[id];
  info.memory_bytes = stats.memory_bytes;
  info.object_count = stats.object_count;
  info.commands_executed = stats.commands_executed;
  info.context_count = stats.context_count;
  info.imported_objects = stats.imported_objects;
  info.shadowed_objects = stats.shadowed_objects;
  info.staged_objects = stats.staged_objects;
  info.device_name = stats.device_name;
  stats_awaited_.erase(id);
}

void Workers::StoreStats(uint64_t id, const wire::ShadowStats& stats) {
  absl::MutexLock lock(&mutex_);
  SessionInfo& info = infos_[id];
  info.shadows_by_semaphores = stats.by_semaphores;
  info.shadows_by_keyed_mutex = stats.by_keyed_mutex;
}

void Workers::Violation(Session* session, const std::string& what) {
  if (MayLog()) {
    Log(LogLevel::kWarning, "broker", "worker broke the control protocol",
        {{"session", HexId(session->id)}, {"reason", what}});
  }
  const uint64_t id = session->id;
  StopListening(session);
  End(id, what, 0);
}

// In a pool a session's commands may need a while until they have ended; then its process must.
int64_t Workers::GraceOf(const Session& session) const {
  constexpr int64_t kPoolGraceMs = 2 * wire::kPoolDrainMs + 1000;
  return session.pool == 0 ? kill_grace_ms_ : kill_grace_ms_ + kPoolGraceMs;
}

bool Workers::End(uint64_t id, const std::string& reason, int64_t grace_ms) {
  thread_.Assert();
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return false;
  if (found->second->pool != 0 && grace_ms > 0)
    grace_ms = std::max(grace_ms, GraceOf(*found->second));
  return EndWithin(id, reason, grace_ms);
}

bool Workers::EndWithin(uint64_t id, const std::string& reason, int64_t grace_ms) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return false;
  Session* session = found->second.get();
  {
    absl::MutexLock lock(&mutex_);
    bool& ending = infos_[id].ending;
    if (!ending && MayLog()) {
      Log(LogLevel::kInfo, "broker", "ending session",
          {{"session", HexId(id)}, {"reason", reason}});
    }
    ending = true;
  }
  if (grace_ms > 0) {
    // Told to end sooner than it was before.
    if (session->kill_timer != 0 && grace_ms < kill_grace_ms_)
      loop_->CancelTimer(&session->kill_timer);
    if (session->control.valid()) {
      auto message = wire::MakeMessage<wire::Terminate>();
      wire::SetString(message.reason, reason);
      // It may not arrive: the timer below has the last word.
      os::SendMessage(session->control.get(), &message, sizeof(message)).IgnoreError();
    }
    if (session->kill_timer == 0) {
      session->kill_timer = loop_->AddTimer(grace_ms, [this, id] { End(id, "", 0); });
    }
    return true;
  }
  loop_->CancelTimer(&session->kill_timer);
  if (session->pool != 0) {
    pools_.Kill(session->pool);  // With its other sessions: it has not let go of this one.
  } else {
    session->worker.KillGroup();  // OnExit follows.
  }
  return true;
}

// Usually it is ending already: its handle channel is at its end too. So no Terminate, no log line,
// only the time after which it must be gone.
void Workers::EndAfterGrace(Session* session, const std::string& reason) {
  if (session->kill_timer != 0) return;
  session->kill_timer = loop_->AddTimer(GraceOf(*session), [this, id = session->id, reason] {
    sessions_[id]->kill_timer = 0;
    End(id, reason, 0);
  });
}

void Workers::EndOwnedBy(uint64_t owner, const std::string& reason) {
  thread_.Assert();
  for (const auto& [id, session] : sessions_) {
    if (session->owner == owner) EndAfterGrace(session.get(), reason);
  }
}

void Workers::EndOneOwnedBy(uint64_t owner, uint64_t id, const std::string& reason) {
  thread_.Assert();
  const auto found = sessions_.find(id);
  if (found != sessions_.end() && found->second->owner == owner)
    EndAfterGrace(found->second.get(), reason);
}

void Workers::EndAll(const std::string& reason, int64_t grace_ms) {
  thread_.Assert();
  std::vector<uint64_t> ids;
  for (const auto& entry : sessions_) ids.push_back(entry.first);
  for (const uint64_t id : ids) EndWithin(id, reason, grace_ms);
}

void Workers::GiveUp() {
  thread_.Assert();
  for (const auto& [id, session] : sessions_) {
    Log(LogLevel::kError, "broker",
        "a worker does not end though it was killed; going on without it",
        {{"session", HexId(id)}, {"pid", session->worker.pid()}});
    loop_->CancelTimer(&session->kill_timer);
    loop_->CancelTimer(&session->start_timer);
    StopListening(session.get());
    turns_.Remove(id);
    groups_->Remove(id);
    grants_.Remove(id, MonotonicMs());
  }
  loop_->CancelTimer(&grant_timer_);
  sessions_.clear();
  absl::MutexLock lock(&mutex_);
  infos_.clear();
}

void Workers::RequestStats() {
  thread_.Assert();
  const auto request = wire::MakeMessage<wire::StatsRequest>();
  const auto of_shadows =
      wire::MakeMessage<wire::ShadowStatsRequest>();  // Its answer is here before the other's.
  absl::MutexLock lock(&mutex_);
  stats_awaited_.clear();
  for (const auto& [id, session] : sessions_) {
    if (!session->control.valid()) continue;
    const int control = session->control.get();
    if (os::SendMessage(control, &of_shadows, sizeof(of_shadows)).ok() &&
        os::SendMessage(control, &request, sizeof(request)).ok()) {
      stats_awaited_.insert(id);
    }
  }
}

void Workers::WaitForStats(absl::Duration timeout) {
  absl::MutexLock lock(&mutex_);
  const auto all_here = [this]()
                            ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return stats_awaited_.empty(); };
  mutex_.AwaitWithTimeout(absl::Condition(&all_here), timeout);
}

std::vector<SessionInfo> Workers::List() const {
  absl::MutexLock lock(&mutex_);
  std::vector<SessionInfo> list;
  for (const auto& entry : infos_) {
    list.push_back(entry.second);
    const uint64_t pool = entry.second.pool;
    list.back().turns = turns_.ReportOf(pool != 0 ? pool : entry.first);
  }
  return list;
}

void Workers::AddQuotas(const Account& account, const std::set<std::string>& domains,
                        std::vector<QuotaUse>* quotas) const {
  thread_.Assert();
  using wire::QuotaKind;
  const uint64_t device = DeviceMemoryLimit(limits_, account);
  // Without a limit none is granted.
  std::optional<uint64_t> granted;
  if (device != 0) granted = grants_.GrantedIn(account.name);
  quotas->push_back({QuotaKind::kDeviceMemory, granted, device});
  const WorkerGroups::Use use = groups_->UseOf(account);
  quotas->push_back({QuotaKind::kHostMemory, use.memory_bytes, use.memory_limit});
  quotas->push_back({QuotaKind::kProcesses, use.processes, use.process_limit});
  QuotaUse caches = {QuotaKind::kCacheBytes, std::nullopt, 0};
  for (const std::string& domain : domains) {
    const CacheBounds::Use cache = caches_.UseOf(launcher_->users().CacheFolderOf(domain));
    if (cache.bytes.has_value()) caches.used = caches.used.value_or(0) + *cache.bytes;
    caches.limit += cache.limit;
  }
  quotas->push_back(caches);
}

bool Workers::Includes(pid_t pid) const {
  thread_.Assert();
  return pools_.Includes(pid) ||
         std::any_of(sessions_.begin(), sessions_.end(),
                     [pid](const auto& entry) { return entry.second->worker.pid() == pid; });
}

size_t Workers::count() const {
  absl::MutexLock lock(&mutex_);
  return infos_.size();
}

}  // namespace sluice::broker
