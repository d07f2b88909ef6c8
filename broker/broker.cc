// SPDX-License-Identifier: Apache-2.0
#include "broker/broker.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "broker/base/log.h"
#include "broker/base/version.h"
#include "broker/config/config_changes.h"
#include "broker/config/sandbox_layers.h"
#include "broker/os/local_socket.h"
#include "broker/os/service.h"
#include "broker/quotas.h"
#include "broker/vendor_folder.h"

namespace sluice::broker {
namespace {

constexpr uint64_t kGatewayOwnerBit = 1ULL << 63;  // Local connections count up from 1.
constexpr absl::Duration kStatsTimeout = absl::Milliseconds(200);
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
          loop_.get(), &policy_, [this] { shutdown_.OnSessionEnded(); },
          [this] { probes_.OnHint(); }),
      probes_(loop_.get(), [this] { OnProbed(); }),
      opener_(&policy_, &workers_, &probes_.probe()),
      resources_(loop_.get()),
      shutdown_(loop_.get(), &workers_, &opener_, &resources_),
      connections_(loop_.get(), &policy_, &workers_, &opener_, &resources_,
                   [this](pid_t pid) { return IsHelper(pid); }),
      listeners_(&connections_),
      calls_(loop_.get()) {
  workers_.SetOnStarted([this](uint64_t id) { opener_.WorkerStarted(id); });
  ConfigureParts();
}

void Broker::ConfigureParts() {
  policy_.Update(config_);
  workers_.Configure(config_, launcher_.get(), groups_.get());
  probes_.Configure(config_, launcher_.get());
  opener_.Configure(config_);
  resources_.Configure(config_.resources, launcher_->users().service(),
                       launcher_->confinement_arguments());
  shutdown_.Configure(config_);
}

bool Broker::IsHelper(pid_t pid) const {
  return probes_.probe().Is(pid) || resources_.IsAllocator(pid) ||
         std::any_of(gateways_.begin(), gateways_.end(),
                     [pid](const auto& gateway) { return gateway->Is(pid); });
}

Broker::~Broker() {
  calls_.Stop();
  admin_.reset();
  monitor_.reset();
  resource_server_.reset();
  gateways_.clear();
  listeners_.Stop();
  connections_.Stop();
  loop_->Unwatch(&signal_watch_);
  RemoveVendorFolder(config_.socket);
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
  if (absl::Status opened = OpenSockets(); !opened.ok()) return opened;
  probes_.Start();
  probes_.WatchMemory();
  StartGateways();
  Log(LogLevel::kInfo, "broker", "started",
      {{"version", kVersion},
       {"socket", client_socket_->address()},
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

absl::Status Broker::OpenSockets() {
  os::UniqueFd listener;
  absl::StatusOr<std::unique_ptr<ClientSocket>> clients = ClientSocket::Open(config_, &listener);
  if (!clients.ok()) return clients.status();
  client_socket_ = *std::move(clients);
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
  client_socket_->LinkOldPlace();
  connections_.Listen(std::move(listener));
  return listeners_.Open(config_);
}

void Broker::StartGateways() {
  for (size_t i = 0; i < config_.network.size(); ++i) {
    gateways_.push_back(std::make_unique<GatewayLink>(
        loop_.get(), &workers_, &opener_, config_.network[i], launcher_->users().service(),
        SandboxArguments(config_), kGatewayOwnerBit | i));
    gateways_.back()->Start();
  }
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
      shutdown_.OnStopSignal();
    }
  }
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
  ConfigureParts();
  listeners_.Reload(config_);
  for (const auto& gateway : gateways_) gateway->ReloadFiles();
  probes_.Start();
}

void Broker::OnProbed() {
  connections_.SnapshotReady();
  for (const auto& gateway : gateways_) gateway->SnapshotReady();
  if (!ready_) Log(LogLevel::kInfo, "broker", "ready", {{"socket", client_socket_->address()}});
  ready_ = true;
  const std::string& problem = probes_.probe().problem();
  os::NotifyService(problem.empty() ? "READY=1\nSTATUS=Serving"
                                    : absl::StrCat("READY=1\nSTATUS=No devices: ", problem));
}

void Broker::Run() {
  loop_->Run();
  Log(LogLevel::kInfo, "broker", "stopped");
}

absl::StatusOr<BrokerStatus> Broker::GetStatus() {
  BrokerStatus status;
  absl::Status ran = calls_.Run([&] {
    status.uptime_seconds = static_cast<uint64_t>((MonotonicMs() - started_ms_) / 1000);
    status.draining = opener_.draining();
    status.endpoints.push_back(absl::StrCat(os::kLocalScheme, client_socket_->address()));
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
    status.worker_sandbox = DescribeLayers(config_);
  });
  if (!ran.ok()) return ran;
  return status;
}

absl::StatusOr<std::vector<SessionInfo>> Broker::ListSessions() {
  if (absl::Status ran = calls_.Run([this] { workers_.RequestStats(); }); !ran.ok()) return ran;
  workers_.WaitForStats(kStatsTimeout);
  return workers_.List();
}

absl::StatusOr<std::vector<ResourceInfo>> Broker::ListResources() {
  std::vector<ResourceInfo> list;
  bool shared = false;
  const absl::Status ran = calls_.Run([&] {
    list = resources_.registry().List();
    shared = config_.resources.enabled;
  });
  if (!ran.ok()) return ran;
  // Resources that existed when a reload turned them off live on.
  if (list.empty() && !shared) return absl::FailedPreconditionError(kResourcesAreOff);
  return list;
}

// Those that have something now, and listeners'. A listener's limits are those of now.
absl::StatusOr<std::vector<AccountQuotas>> Broker::ListAccounts() {
  std::vector<AccountQuotas> list;
  const absl::Status ran = calls_.Run([&] {
    std::map<std::string, Account> accounts;
    std::map<std::string, std::set<std::string>> domains;
    for (const ListenerInfo& listener : listeners_.List()) {
      const Account account = AccountOf(listener.config);
      accounts[account.name] = account;
    }
    std::vector<Tenant> tenants = connections_.Tenants();
    for (const SessionInfo& session : workers_.List()) tenants.push_back(session.tenant);
    for (const Tenant& tenant : tenants) {
      accounts.try_emplace(tenant.account.name, tenant.account);
      domains[tenant.account.name].insert(tenant.domain.name);
    }
    for (const ResourceInfo& resource : resources_.registry().List())
      accounts.try_emplace(resource.identity).first->second.name = resource.identity;
    for (const auto& [name, account] : accounts)
      list.push_back(QuotasOf(account, domains[name], policy_, workers_, resources_));
  });
  if (!ran.ok()) return ran;
  return list;
}

Probe::Summary Broker::GetSnapshot() { return probes_.probe().Copy(); }

absl::Status Broker::KillSession(uint64_t id, const std::string& reason) {
  bool found = false;
  absl::Status ran = calls_.Run([&] {
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
  if (absl::Status ran = calls_.Run([&] { list = listeners_.List(); }); !ran.ok()) return ran;
  return list;
}

absl::Status Broker::AddListener(ListenerConfig* listener) {
  absl::Status added;
  const absl::Status ran = calls_.Run([&] {
    added = opener_.draining() ? absl::FailedPreconditionError("the daemon is about to stop")
                               : listeners_.Add(config_, listener);
  });
  return ran.ok() ? added : ran;
}

absl::Status Broker::RemoveListener(const std::string& tenant, bool end_sessions) {
  absl::Status removed;
  const absl::Status ran = calls_.Run([&] { removed = listeners_.Remove(tenant, end_sessions); });
  return ran.ok() ? removed : ran;
}

absl::StatusOr<uint64_t> Broker::Drain(int64_t timeout_ms) {
  uint64_t left = 0;
  absl::Status ran = calls_.Run([&] {
    left = workers_.count();
    shutdown_.Drain(timeout_ms);
  });
  if (!ran.ok()) return ran;
  return left;
}

}  // namespace sluice::broker
