// SPDX-License-Identifier: Apache-2.0
#include "client_icd/objects/endpoint.h"

#include <algorithm>
#include <iterator>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "broker/base/peer_version.h"
#include "broker/os/this_process.h"
#include "broker/os/threads.h"
#include "client_icd/base/client_log.h"
#include "client_icd/connect/connect_limit.h"
#include "client_icd/connect/remote_plugin.h"
#include "client_icd/connect/sluice_library.h"
#include "client_icd/connect/sync_mode.h"
#include "proto/snapshot.pb.h"
#include "proto/status_macros.h"
#include "proto/told_memory.h"

namespace sluice::client {
namespace {

// How long an endpoint that did not answer is taken to be as it was.
constexpr absl::Duration kFailureHolds = absl::Seconds(1);
// How long a fork may wait for our threads.
constexpr absl::Duration kForkPatience = absl::Seconds(1);

// Every endpoint of the process. Made once; leaked, since threads may still run while the process
// ends.
struct Registry {
  absl::Mutex mu;
  bool parsed ABSL_GUARDED_BY(mu) = false;
  std::vector<Endpoint*> endpoints ABSL_GUARDED_BY(mu);
};

Registry& TheRegistry() {
  static Registry* const registry = new Registry;
  return *registry;
}

void ParseOnce(Registry& registry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(registry.mu) {
  if (registry.parsed) return;
  registry.parsed = true;
  const std::string sync = os::EnvironmentVariable(kSyncVariable).value_or("0");
  if (sync != "0" && sync != "1") {
    ClientLog(ClientLogLevel::kWarning,
              absl::StrCat(kSyncVariable, "=", sync, " is ignored: it is none of 0, 1"));
  }
  if (os::EnvironmentVariable("SLUICE_WORKER") == "1") {
    ClientLog(ClientLogLevel::kWarning,
              "SLUICE_WORKER=1 is for Sluice's own workers, which see no device of Sluice's");
    return;
  }
  if (const std::string problem = ConnectLimitProblem(kRemoteAnswerTimeoutMs); !problem.empty())
    ClientLog(ClientLogLevel::kWarning, problem);
  // One that is mistyped is as one that does not answer: the others are there.
  std::vector<absl::Status> refused;
  absl::StatusOr<std::vector<EndpointAddress>> addresses =
      ParseEndpoints(os::EnvironmentVariable("SLUICE_ENDPOINT").value_or(""), &refused);
  for (const absl::Status& status : refused)
    ClientLog(ClientLogLevel::kError, std::string(status.message()));
  for (EndpointAddress& address : *addresses)
    registry.endpoints.push_back(new Endpoint(std::move(address)));
}

}  // namespace

absl::Status Endpoint::Discover() {
  absl::MutexLock lock(&mu_);
  if (discovered_) return absl::OkStatus();
  // A loader asks at least twice for what is one question of the application.
  if (absl::Now() < asked_until_) return last_failure_;
  absl::Status status = DiscoverLocked();
  if (!status.ok()) {
    last_failure_ = status;
    asked_until_ = absl::Now() + kFailureHolds;
  }
  return status;
}

absl::Status Endpoint::DiscoverLocked() {
  std::string bytes;
  std::string problem;
  std::string version;
  if (address_.local()) {
    ASSIGN_OR_RETURN(broker_, BrokerConnection::Connect(address_.target, &bytes, &problem));
    version = broker_->daemon_version();
  } else {
    ASSIGN_OR_RETURN(bytes, DescribeRemote(address_.target, &version));
  }
  pb::PlatformSnapshot snapshot;
  if (!snapshot.ParseFromString(bytes)) {
    return absl::InvalidArgumentError(absl::StrCat("the daemon's snapshot does not parse; ",
                                                   VersionAdvice("client", "daemon", version)));
  }
  if (broker_ != nullptr && broker_->memory_bytes() != 0)
    wire::NarrowMemory(broker_->memory_bytes(), &snapshot);
  if (snapshot.platforms().empty()) {  // It may have some another time.
    return absl::UnavailableError(
        problem.empty() ? "the daemon offers no device: see [devices] allow in its configuration"
                        : absl::StrCat("the daemon has no device: ", problem));
  }
  const bool shares_resources =
      broker_ != nullptr && broker_->shares_resources() && sharing::HasSluiceLibrary();
  for (const pb::PlatformSnapshot::Platform& described : snapshot.platforms()) {
    platforms_.push_back(new Platform(this, described, shares_resources));
  }
  discovered_ = true;
  return absl::OkStatus();
}

bool Endpoint::IsNews(const absl::Status& found) {
  absl::MutexLock lock(&mu_);
  const bool news = !found.ok() && found != told_;
  told_ = found;
  return news;
}

void Endpoint::AppendPlatforms(std::vector<Platform*>* out) {
  absl::MutexLock lock(&mu_);
  out->insert(out->end(), platforms_.begin(), platforms_.end());
}

absl::StatusOr<std::shared_ptr<Session>> Endpoint::GetSession(Sharing sharing) {
  absl::MutexLock lock(&mu_);
  const bool pools = broker_ != nullptr && broker_->has_pools();
  std::shared_ptr<Session>& session = pools && sharing == Sharing::kMay ? pooled_ : session_;
  if (session != nullptr && !session->lost()) return session;
  replaced_ = replaced_ || session != nullptr;
  session.reset();
  ASSIGN_OR_RETURN(session, StartLocked(sharing));
  return session;
}

bool Endpoint::pools_processors() {
  absl::MutexLock lock(&mu_);
  return broker_ != nullptr && broker_->has_pools_of_processors();
}

void Endpoint::DropSession(const Session& session) {
  absl::MutexLock lock(&mu_);
  for (std::shared_ptr<Session>* const held : {&session_, &pooled_}) {
    if (held->get() != &session) continue;
    held->reset();
    replaced_ = true;
  }
}

bool Endpoint::ever_lost() {
  absl::MutexLock lock(&mu_);
  return replaced_ || (session_ != nullptr && session_->lost()) ||
         (pooled_ != nullptr && pooled_->lost());
}

absl::StatusOr<std::shared_ptr<Session>> Endpoint::OpenSeparateSession() {
  {
    absl::MutexLock lock(&spare_mu_);
    std::erase_if(spares_, [](const std::shared_ptr<Session>& spare) { return spare->lost(); });
    if (!spares_.empty()) {
      std::shared_ptr<Session> session = std::move(spares_.back());
      spares_.pop_back();
      return session;
    }
  }
  absl::MutexLock lock(&mu_);
  return StartLocked(Sharing::kNeedsWorker);
}

absl::StatusOr<std::shared_ptr<Session>> Endpoint::StartLocked(Sharing sharing) {
  ASSIGN_OR_RETURN(OpenedTransport opened, ConnectLocked(sharing));
  std::shared_ptr<Session> session = Session::Start(std::move(opened));
  if (session == nullptr) {
    return absl::ResourceExhaustedError(
        "a session needs a thread, and this process can have no more: raise its limit on address "
        "space (ulimit -v) or on processes (ulimit -u)");
  }
  SendDevicesLocked(*session);
  std::erase_if(sessions_, [](const std::weak_ptr<Session>& old) { return old.expired(); });
  sessions_.push_back(session);
  return session;
}

// The daemon, or the machine, may be another than the one that the platforms were made from.
void Endpoint::SendDevicesLocked(Session& session) {
  ScopedCommand command;
  pb::SetDevices& body = *command->mutable_set_devices();
  for (const Platform* platform : platforms_) {
    for (const Device* device : platform->devices()) {
      if (device->key() == 0) return;  // A daemon of before.
      pb::SetDevices::Entry& entry = *body.add_devices();
      entry.set_id(device->id());
      entry.set_key(device->key());
    }
  }
  session.stream().PostQuietly(*command);
}

void Endpoint::KeepSession(std::shared_ptr<Session> session) {
  absl::MutexLock lock(&spare_mu_);
  spares_.push_back(std::move(session));
}

void Endpoint::CloseSession(const Session& session) {
  absl::MutexLock lock(&mu_);
  if (broker_ != nullptr && session.daemon_id() != 0) broker_->CloseSession(session.daemon_id());
}

absl::StatusOr<OpenedTransport> Endpoint::ConnectLocked(Sharing sharing) {
  if (address_.kind == EndpointAddress::Kind::kRemote) {
    ASSIGN_OR_RETURN(std::unique_ptr<Transport> remote, ConnectRemote(address_.target));
    return OpenedTransport{std::move(remote)};
  }
  if (broker_ != nullptr && broker_->there()) {
    absl::StatusOr<OpenedTransport> transport = broker_->OpenSession(sharing);
    // A refusal is an answer; everything else may be a broker that was restarted.
    if (transport.ok() || absl::IsResourceExhausted(transport.status()) ||
        absl::IsFailedPrecondition(transport.status())) {
      return transport;
    }
  }
  std::string unused_snapshot;
  ASSIGN_OR_RETURN(broker_, BrokerConnection::Connect(address_.target, &unused_snapshot));
  return broker_->OpenSession(sharing);
}

void Endpoint::PrepareForkLocked() {
  const absl::Time deadline = absl::Now() + kForkPatience;
  for (const std::weak_ptr<Session>& weak : sessions_) {
    std::shared_ptr<Session> session = weak.lock();
    if (session == nullptr || session->forked()) continue;
    session->HoldForFork(&fork_locks_, deadline);
    forking_.push_back(std::move(session));
  }
}

void Endpoint::LoseInForkedChildLocked() {
  if (broker_ != nullptr) broker_->CloseInForkedChild();
  broker_.reset();
  for (std::shared_ptr<Session>& session : forking_) {
    session->LoseInForkedChild();
    // Kept for ever: its mappings and threads do not exist here and must not be given back.
    new std::shared_ptr<Session>(std::move(session));
  }
  forking_.clear();
  fork_locks_.Renew();
  sessions_.clear();
  session_.reset();
  pooled_.reset();
}

// Holds the endpoints and their sessions still while the process forks, so that the child finds
// them whole.
class ForkGuard {
 public:
  static void Install() {
    static const bool installed = [] {
      os::AtFork(Prepare, Parent, Child);
      return true;
    }();
    static_cast<void>(installed);
  }

 private:
  static void Prepare() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    Registry& registry = TheRegistry();
    registry.mu.Lock();
    for (Endpoint* endpoint : registry.endpoints) {
      endpoint->mu_.Lock();
      endpoint->spare_mu_.Lock();
    }
    // Last: an endpoint that connects takes its time, and sessions should not stand still for that.
    for (Endpoint* endpoint : registry.endpoints) endpoint->PrepareForkLocked();
  }
  static void Parent() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    Registry& registry = TheRegistry();
    // Let go of without a lock, since the last reference may be among them.
    std::vector<std::shared_ptr<Session>> sessions;
    for (Endpoint* endpoint : registry.endpoints) {
      endpoint->fork_locks_.Release();
      std::ranges::move(endpoint->forking_, std::back_inserter(sessions));
      endpoint->forking_.clear();
      endpoint->spare_mu_.Unlock();
      endpoint->mu_.Unlock();
    }
    registry.mu.Unlock();
  }
  static void Child() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    Registry& registry = TheRegistry();
    for (Endpoint* endpoint : registry.endpoints) {
      endpoint->LoseInForkedChildLocked();
      new (&endpoint->spare_mu_) absl::Mutex;  // As in ForkLocks.
      new (&endpoint->mu_) absl::Mutex;
    }
    new (&registry.mu) absl::Mutex;
  }
};

namespace {

// The outcome of each, in their order. Side by side, so that one that does not answer delays nobody
// else's answer.
std::vector<absl::Status> DiscoverAll(const std::vector<Endpoint*>& endpoints) {
  struct Latch {
    absl::Mutex mu;
    size_t running ABSL_GUARDED_BY(mu) = 0;
  };
  const auto latch = std::make_shared<Latch>();
  std::vector<absl::Status> found(endpoints.size());
  for (size_t i = 1; i < endpoints.size(); ++i) {
    {
      absl::MutexLock lock(&latch->mu);
      ++latch->running;
    }
    const auto ask = [latch, endpoint = endpoints[i], mine = &found[i]] {
      *mine = endpoint->Discover();
      absl::MutexLock lock(&latch->mu);
      --latch->running;
    };
    if (!endpoints[i]->discovered() && os::StartThread("sluice-discover", ask)) continue;
    ask();
  }
  found.front() = endpoints.front()->Discover();
  absl::MutexLock lock(&latch->mu);
  latch->mu.Await(absl::Condition(
      +[](Latch* all) ABSL_EXCLUSIVE_LOCKS_REQUIRED(all->mu) { return all->running == 0; },
      latch.get()));
  return found;
}

// A reason that leaves the application without any platform is an error; where there are others, a
// warning. Each is told once until it changes, however often the application asks.
void LogFailures(const std::vector<Endpoint*>& endpoints, const std::vector<absl::Status>& found,
                 bool any_platform) {
  const ClientLogLevel level = any_platform ? ClientLogLevel::kWarning : ClientLogLevel::kError;
  for (size_t i = 0; i < endpoints.size(); ++i) {
    if (!endpoints[i]->IsNews(found[i])) continue;
    ClientLog(level, absl::StrCat(endpoints[i]->address().target, ": ", found[i].message()));
  }
}

}  // namespace

std::vector<Platform*> AllPlatforms() {
  std::vector<Endpoint*> endpoints;
  {
    Registry& registry = TheRegistry();
    absl::MutexLock lock(&registry.mu);
    ParseOnce(registry);
    endpoints = registry.endpoints;
  }
  if (endpoints.empty()) return {};
  // Debian builds abseil with its deadlock detector on, which makes every lock several times
  // dearer. A debugging aid of the process: an application that shares the library and wants it can
  // turn it on again.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  // Our threads run on when a loader has closed this library.
  os::KeepLibraryOf(reinterpret_cast<const void*>(&AllPlatforms));
  ForkGuard::Install();
  const std::vector<absl::Status> found = DiscoverAll(endpoints);
  std::vector<Platform*> platforms;
  for (Endpoint* endpoint : endpoints) endpoint->AppendPlatforms(&platforms);
  LogFailures(endpoints, found, !platforms.empty());
  return platforms;
}

Platform* DefaultPlatform() {
  const std::vector<Platform*> all = AllPlatforms();
  return all.empty() ? nullptr : all.front();
}

}  // namespace sluice::client
