// SPDX-License-Identifier: Apache-2.0
#include "broker/broker.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "broker/base/log.h"
#include "broker/base/version.h"
#include "broker/config/config_changes.h"
#include "broker/config/sandbox_layers.h"
#include "broker/os/local_socket.h"
#include "broker/os/service.h"
#include "broker/vendor_folder.h"

namespace sluice::broker {
namespace {

constexpr uint64_t kGatewayOwnerBit = 1ULL << 63;  // Local connections count up from 1.
constexpr absl::Duration kStatsTimeout = absl::Milliseconds(200);
// "At once" leaves a worker time to tell its client why, and no more.
constexpr int64_t kLastWordsMs = 200;
// Time for the system to end killed workers, which may have much memory to give back.
constexpr int64_t kKilledMs = 10'000;

// The same socket, perhaps by a link to its folder (/var/run).
bool SamePlace(const std::filesystem::path& one, const std::filesystem::path& other) {
  std::error_code ignored;
  return one == other ||
         (one.filename() == other.filename() &&
          std::filesystem::equivalent(one.parent_path(), other.parent_path(), ignored));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Broker>> Broker::Create(Config config, ConfigLoader reload) {
  if (absl::Status made = MakeDaemonFolders(config); !made.ok()) return made;
  absl::StatusOr<InstanceLock> lock = InstanceLock::Take(config.socket);
  if (!lock.ok()) return lock.status();
  absl::StatusOr<std::unique_ptr<EventLoop>> loop = EventLoop::Create();
  if (!loop.ok()) return loop.status();
  absl::StatusOr<std::unique_ptr<WorkerGroups>> groups =
      WorkerGroups::Create(config.control_groups, loop->get());
  if (!groups.ok()) return groups.status();
  absl::StatusOr<WorkerLauncher> launcher = WorkerLauncher::Create(config);
  if (!launcher.ok()) return launcher.status();
  std::unique_ptr<Broker> broker(new Broker(std::move(config), std::move(reload), *std::move(lock),
                                            *std::move(loop), *std::move(groups),
                                            *std::move(launcher)));
  if (absl::Status started = broker->Start(); !started.ok()) return started;
  return broker;
}

Broker::Broker(Config config, ConfigLoader reload, InstanceLock lock,
               std::unique_ptr<EventLoop> loop, std::unique_ptr<WorkerGroups> groups,
               WorkerLauncher launcher)
    : reload_(std::move(reload)),
      lock_(std::move(lock)),
      started_ms_(MonotonicMs()),
      config_(std::move(config)),
      loop_(std::move(loop)),
      groups_(std::move(groups)),
      launcher_(std::make_unique<WorkerLauncher>(std::move(launcher))),
      policy_(config_),
      workers_(
          loop_.get(), &policy_, [this] { OnSessionEnded(); },
          [this] { PlanProbe(probe_schedule_.OnHint(MonotonicMs())); }),
      probe_(loop_.get()),
      opener_(&policy_, &workers_, &probe_),
      resources_(loop_.get()),
      admission_(loop_.get(), &policy_, &workers_, &opener_, &resources_,
                 [this](pid_t pid) { return IsHelper(pid); }),
      listeners_(&admission_) {
  workers_.Configure(config_, launcher_.get(), groups_.get());
  workers_.SetOnStarted([this](uint64_t id) { opener_.WorkerStarted(id); });
  opener_.Configure(config_);
  resources_.Configure(config_.resources, launcher_->users().service(),
                       launcher_->confinement_arguments());
}

bool Broker::IsHelper(pid_t pid) const {
  return probe_.Is(pid) || resources_.IsAllocator(pid) ||
         std::any_of(gateways_.begin(), gateways_.end(),
                     [pid](const auto& gateway) { return gateway->Is(pid); });
}

Broker::~Broker() {
  {
    absl::MutexLock lock(&mutex_);
    stopped_ = true;  // Admin requests that wait for the loop give up.
  }
  admin_.reset();
  monitor_.reset();
  resource_server_.reset();
  gateways_.clear();
  listeners_.Stop();
  admission_.Stop();
  probe_.Cancel();
  loop_->Unwatch(&signal_watch_);
  RemoveVendorFolder(config_.socket);
  if (owns_socket_file_) {
    RemoveSocketFile(config_.socket);
    if (old_places_linked_) UnlinkOldPlaces(config_);
  }
}

absl::Status Broker::Start() {
  if (absl::Status watched = WatchSignals(); !watched.ok()) return watched;
  for (const NetworkConfig& network : config_.network) {
    absl::Status free = CheckNetwork(network, NetworkCheck::kPorts, launcher_->users().service());
    // The network may come after the daemon, whose local clients need not wait for it.
    if (!free.ok() && !absl::IsUnavailable(free)) return free;
    if (free.ok()) continue;
    Log(LogLevel::kWarning, "broker", "an address is not there yet; it will be tried again",
        {{"reason", std::string(free.message())}});
  }
  absl::StatusOr<os::UniqueFd> listener = TakeOrOpenListener();
  if (!listener.ok()) return listener.status();
  absl::StatusOr<std::unique_ptr<ResourceServer>> resources =
      ResourceServer::Start(loop_.get(), &resources_);
  if (!resources.ok()) return resources.status();
  resource_server_ = *std::move(resources);
  absl::StatusOr<std::unique_ptr<AdminServer>> admin =
      AdminServer::Start(loop_.get(), {AdminRole::kAdministrator, config_.admin_socket}, this);
  if (!admin.ok()) return admin.status();
  admin_ = *std::move(admin);
  absl::StatusOr<std::unique_ptr<AdminServer>> monitor = AdminServer::Start(
      loop_.get(),
      {AdminRole::kMonitor, config_.monitor_socket, config_.monitor_group, config_.admin_socket},
      this);
  if (!monitor.ok()) return monitor.status();
  monitor_ = *std::move(monitor);
  old_places_linked_ = LinkOldPlaces(config_);
  admission_.Listen(*std::move(listener));
  if (absl::Status opened = listeners_.Open(config_); !opened.ok()) return opened;
  StartProbe();
  WatchMemory();
  for (size_t i = 0; i < config_.network.size(); ++i) {
    gateways_.push_back(
        std::make_unique<GatewayLink>(loop_.get(), &workers_, &opener_, config_.network[i],
                                      launcher_->users().service(), kGatewayOwnerBit | i));
    gateways_.back()->Start();
  }
  Log(LogLevel::kInfo, "broker", "started",
      {{"version", kVersion},
       {"socket", listens_at_},
       {"admin_socket", config_.admin_socket},
       {"monitor_socket", config_.monitor_socket},
       {"config", config_.file.empty() ? "built-in" : config_.file},
       {"worker_user", launcher_->users().Describe()},
       {"worker_sandbox", DescribeLayers(config_)},
       {"control_groups", groups_->Describe()}});
  if (const std::string advice = groups_->Advice(); !advice.empty()) {
    Log(LogLevel::kInfo, "broker", "workers lack control groups, or some of their limits",
        {{"reason", groups_->Describe()}, {"advice", advice}});
  }
  return absl::OkStatus();
}

absl::StatusOr<os::UniqueFd> Broker::TakeOrOpenListener() {
  bool ignored = false;
  for (os::InheritedSocket& inherited : os::TakeInheritedSockets()) {
    if (!os::IsLocalListener(inherited.fd.get())) {
      Log(LogLevel::kWarning, "broker", "ignoring a socket from the service manager",
          {{"name", inherited.name}, {"wanted", "ListenSequentialPacket= with a path"}});
      ignored = true;
      continue;
    }
    if (absl::Status set = os::SetNonBlocking(inherited.fd.get(), true); !set.ok()) return set;
    listens_at_ = inherited.address;
    if (!SamePlace(listens_at_, config_.socket)) {
      Log(LogLevel::kWarning, "broker",
          "applications reach this daemon at the service manager's socket, not at the configured "
          "one",
          {{"in_use", listens_at_},
           {"configured", config_.socket},
           {"advice",
            "in the daemon's configuration set socket to the one in use, or in sluiced.socket "
            "ListenSequentialPacket= to the configured one (systemctl edit sluiced.socket)"}});
    }
    return std::move(inherited.fd);  // Its file belongs to the service manager.
  }
  listens_at_ = config_.socket;
  absl::StatusOr<os::UniqueFd> listener =
      OpenListener({config_.socket, config_.socket_mode, config_.socket_group});
  owns_socket_file_ = listener.ok();
  if (ignored && absl::IsAlreadyExists(listener.status())) {
    return absl::AlreadyExistsError(
        absl::StrCat("the service manager listens at ", config_.socket,
                     " with a socket of another kind than sluiced's: its unit must say "
                     "ListenSequentialPacket=",
                     config_.socket));
  }
  return listener;
}

absl::Status Broker::WatchSignals() {
  absl::StatusOr<std::unique_ptr<os::StopSignals>> signals = os::StopSignals::Open();
  if (!signals.ok()) return signals.status();
  signals_ = *std::move(signals);
  signal_watch_ = loop_->Watch(signals_->fd(), [this] { OnSignal(); });
  return absl::OkStatus();
}

void Broker::OnSignal() {
  while (const std::optional<os::StopSignals::Kind> kind = signals_->Next()) {
    if (*kind == os::StopSignals::Kind::kReload) {
      Reload();
    } else {
      OnTerminate();
    }
  }
}

void Broker::OnTerminate() {
  // An operator's drain before this does not count: it may have no time limit.
  if (std::exchange(told_to_stop_, true)) {
    Log(LogLevel::kWarning, "broker", "told to stop again: ending all sessions at once");
    return EndWorkers("the daemon was told to stop at once",
                      std::min<int64_t>(kLastWordsMs, config_.kill_grace_ms));
  }
  if (config_.drain_timeout_ms == 0) {
    BeginDrain(0);
    return EndWorkers("the daemon is stopping", config_.kill_grace_ms);
  }
  BeginDrain(config_.drain_timeout_ms);
}

void Broker::BeginDrain(int64_t timeout_ms) {
  if (!opener_.draining()) {
    opener_.StartDraining();
    resources_.StartDraining();
    Log(LogLevel::kInfo, "broker", "draining: no new sessions",
        {{"sessions", workers_.count()}, {"timeout_ms", timeout_ms}});
    TellServiceManager(
        absl::StrCat("STOPPING=1\nSTATUS=Draining: ", workers_.count(), " sessions left"));
  }
  loop_->CancelTimer(&drain_timer_);
  if (timeout_ms > 0) {
    // The unit's own limit would kill the broker in the middle and leave the workers alone.
    const int64_t longest_ms = timeout_ms + config_.kill_grace_ms + kKilledMs + kLastWordsMs;
    TellServiceManager(absl::StrCat("EXTEND_TIMEOUT_USEC=", longest_ms * 1000));
    drain_timer_ = loop_->AddTimer(timeout_ms, [this] {
      drain_timer_ = 0;
      Log(LogLevel::kWarning, "broker", "drain timeout: ending the sessions that are left",
          {{"sessions", workers_.count()}});
      EndWorkers("the daemon is stopping", config_.kill_grace_ms);
    });
  }
  OnSessionEnded();
}

void Broker::EndWorkers(const char* reason, int64_t grace_ms) {
  workers_.EndAll(reason, grace_ms);
  loop_->CancelTimer(&give_up_timer_);
  give_up_timer_ = loop_->AddTimer(grace_ms + kKilledMs, [this] {
    give_up_timer_ = 0;
    workers_.GiveUp();
    loop_->Quit();
  });
  OnSessionEnded();
}

void Broker::OnSessionEnded() {
  if (!opener_.draining()) return;
  if (workers_.count() == 0) loop_->Quit();
}

void Broker::Reload() {
  Log(LogLevel::kInfo, "broker", "reloading the configuration", {{"file", config_.file}});
  const auto keep = [](const absl::Status& why) {
    Log(LogLevel::kError, "broker", "configuration kept as it was",
        {{"reason", std::string(why.message())}});
  };
  absl::StatusOr<Config> fresh = reload_();
  if (!fresh.ok()) return keep(fresh.status());
  for (const std::string& key : KeysThatAwaitAStart(config_, *fresh)) {
    Log(LogLevel::kWarning, "broker",
        "changed in the configuration, and takes effect only when sluiced is started again",
        {{"what", key}});
  }
  // Sockets stay as they were; limits and rights are new.
  fresh->socket = config_.socket;
  fresh->socket_mode = config_.socket_mode;
  fresh->socket_group = config_.socket_group;
  fresh->admin_socket = config_.admin_socket;
  fresh->monitor_socket = config_.monitor_socket;
  fresh->monitor_group = config_.monitor_group;
  fresh->network = config_.network;
  fresh->control_groups = config_.control_groups;
  absl::StatusOr<WorkerLauncher> launcher = WorkerLauncher::Create(*fresh);
  if (!launcher.ok()) return keep(launcher.status());
  config_ = *std::move(fresh);
  *launcher_ = *std::move(launcher);
  SetLogLevel(config_.log_level);
  policy_.Update(config_);
  listeners_.Reload(config_);
  workers_.Configure(config_, launcher_.get(), groups_.get());
  opener_.Configure(config_);
  resources_.Configure(config_.resources, launcher_->users().service(),
                       launcher_->confinement_arguments());
  for (const auto& gateway : gateways_) gateway->ReloadFiles();
  StartProbe();
}

// A device's memory size is that of a moment: a driver for the processor reports the machine's,
// which a hypervisor changes while the virtual machine runs. Clients that connect from now on are
// told what there is, without a worker for each.
void Broker::WatchMemory() {
  constexpr int64_t kLookMs = 2'000;
  constexpr uint64_t kLeastPart = 32;  // A change of less than one such part is ignored.
  loop_->AddTimer(kLookMs, [this] { WatchMemory(); });
  const uint64_t before = probed_memory_;
  const uint64_t now = os::MachineMemoryBytes();
  const uint64_t change = now > before ? now - before : before - now;
  if (probe_.running() || now == 0 || before == 0 || change <= before / kLeastPart) return;
  Log(LogLevel::kInfo, "broker", "the machine's memory has changed: asking the devices again",
      {{"bytes", now}, {"before", before}});
  StartProbe();
}

void Broker::PlanProbe(std::optional<int64_t> delay_ms) {
  if (!delay_ms.has_value()) return;
  loop_->CancelTimer(&probe_timer_);
  probe_timer_ = loop_->AddTimer(*delay_ms, [this] {
    probe_timer_ = 0;
    StartProbe();
  });
}

void Broker::StartProbe() {
  loop_->CancelTimer(&probe_timer_);
  probe_schedule_.OnStart();
  // It began with what the configuration said then.
  if (probe_.running()) {
    probe_again_ = true;
    return;
  }
  probed_memory_ = os::MachineMemoryBytes();
  probe_.Start(*launcher_, config_.limits.memory_bytes, config_.probe_timeout_ms,
               [this] { OnProbeDone(); });
}

void Broker::OnProbeDone() {
  // Not from within Start, which may still be making the parts that are used here.
  loop_->Post([this] {
    if (std::exchange(probe_again_, false)) return StartProbe();
    PlanProbe(probe_schedule_.OnResult(probe_.problem().empty(), probe_.changed(), MonotonicMs()));
    admission_.SnapshotReady();
    for (const auto& gateway : gateways_) gateway->SnapshotReady();
    if (!ready_) Log(LogLevel::kInfo, "broker", "ready", {{"socket", listens_at_}});
    ready_ = true;
    TellServiceManager(probe_.problem().empty()
                           ? "READY=1\nSTATUS=Serving"
                           : absl::StrCat("READY=1\nSTATUS=No devices: ", probe_.problem()));
  });
}

void Broker::TellServiceManager(const std::string& state) { os::NotifyService(state); }

void Broker::Run() {
  loop_->Run();
  Log(LogLevel::kInfo, "broker", "stopped");
}

absl::Status Broker::RunOnLoop(std::function<void()> task) {
  // Shared: this thread may give up before the loop comes to the task.
  struct Call {
    std::function<void()> task;
    bool done = false;
    bool abandoned = false;
  };
  auto call = std::make_shared<Call>();
  call->task = std::move(task);
  loop_->Post([this, call] {
    absl::MutexLock lock(&mutex_);
    if (call->abandoned) return;
    call->task();  // Under the lock: the caller's variables live until it has seen `done`.
    call->done = true;
  });
  absl::MutexLock lock(&mutex_);
  const auto finished = [this, &call]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return call->done || stopped_;
  };
  mutex_.Await(absl::Condition(&finished));
  call->abandoned = !call->done;
  return call->done ? absl::OkStatus() : absl::CancelledError("the daemon is stopping");
}

absl::StatusOr<BrokerStatus> Broker::GetStatus() {
  BrokerStatus status;
  absl::Status ran = RunOnLoop([&] {
    status.uptime_seconds = static_cast<uint64_t>((MonotonicMs() - started_ms_) / 1000);
    status.draining = opener_.draining();
    status.endpoints.push_back(absl::StrCat(os::kLocalScheme, listens_at_));
    for (const ListenerInfo& listener : listeners_.List())
      status.endpoints.push_back(absl::StrCat(os::kLocalScheme, listener.config.path));
    for (const NetworkConfig& network : config_.network) {
      status.endpoints.insert(status.endpoints.end(), network.listen.begin(), network.listen.end());
    }
    status.config_file = config_.file;
    status.session_limit = config_.limits.max_sessions;
    status.worker_user = launcher_->users().Describe();
    status.control_groups = groups_->Describe();
    status.control_groups_advice = groups_->Advice();
  });
  if (!ran.ok()) return ran;
  return status;
}

absl::StatusOr<std::vector<SessionInfo>> Broker::ListSessions() {
  if (absl::Status ran = RunOnLoop([this] { workers_.RequestStats(); }); !ran.ok()) return ran;
  workers_.WaitForStats(kStatsTimeout);
  return workers_.List();
}

absl::StatusOr<std::vector<ResourceInfo>> Broker::ListResources() {
  std::vector<ResourceInfo> list;
  bool shared = false;
  const absl::Status ran = RunOnLoop([&] {
    list = resources_.registry().List();
    shared = config_.resources.enabled;
  });
  if (!ran.ok()) return ran;
  // Resources that existed when a reload turned them off live on.
  if (list.empty() && !shared) return absl::FailedPreconditionError(kResourcesAreOff);
  return list;
}

Probe::Summary Broker::GetSnapshot() { return probe_.Copy(); }

absl::Status Broker::KillSession(uint64_t id, const std::string& reason) {
  bool found = false;
  absl::Status ran = RunOnLoop([&] {
    found =
        workers_.End(id, reason.empty() ? "ended by an operator" : reason, config_.kill_grace_ms);
  });
  if (!ran.ok()) return ran;
  if (found) return absl::OkStatus();
  return absl::NotFoundError(
      absl::StrCat("no session ", HexId(id), "; `sluicectl sessions` lists those that run"));
}

absl::StatusOr<std::vector<ListenerInfo>> Broker::ListListeners() {
  std::vector<ListenerInfo> list;
  if (absl::Status ran = RunOnLoop([&] { list = listeners_.List(); }); !ran.ok()) return ran;
  return list;
}

absl::Status Broker::AddListener(ListenerConfig* listener) {
  absl::Status added;
  const absl::Status ran = RunOnLoop([&] {
    added = opener_.draining() ? absl::FailedPreconditionError("the daemon is about to stop")
                               : listeners_.Add(config_, listener);
  });
  return ran.ok() ? added : ran;
}

absl::Status Broker::RemoveListener(const std::string& tenant, bool end_sessions) {
  absl::Status removed;
  const absl::Status ran = RunOnLoop([&] { removed = listeners_.Remove(tenant, end_sessions); });
  return ran.ok() ? removed : ran;
}

absl::StatusOr<uint64_t> Broker::Drain(int64_t timeout_ms) {
  uint64_t left = 0;
  absl::Status ran = RunOnLoop([&] {
    left = workers_.count();
    BeginDrain(timeout_ms);
  });
  if (!ran.ok()) return ran;
  return left;
}

}  // namespace sluice::broker
