// SPDX-License-Identifier: Apache-2.0
// The daemons that this process may use, from SLUICE_ENDPOINT: each (endpoint x real platform of
// its daemon) is one OpenCL platform. Connects when the loader first asks for platforms, which is
// cheap and starts no worker; a session is opened by the first context. Endpoints and platforms are
// never destroyed. Thread-safe. Survives fork: the child keeps the platforms and opens a session of
// its own.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "broker/base/endpoint_address.h"
#include "client_icd/base/fork_locks.h"
#include "client_icd/connect/broker_connection.h"
#include "client_icd/objects/platform.h"
#include "client_icd/session/session.h"

namespace sluice::client {

class Endpoint {
 public:
  explicit Endpoint(EndpointAddress address) : address_(std::move(address)) {}

  const EndpointAddress& address() const { return address_; }

  // Asks the daemon for its platforms, unless it has answered before, or failed to a moment ago.
  absl::Status Discover();
  bool discovered() const {
    absl::MutexLock lock(&mu_);
    return discovered_;
  }
  bool is_remote() const { return address_.kind == EndpointAddress::Kind::kRemote; }
  // True if this answer of Discover's is a failure that was not the last one already.
  bool IsNews(const absl::Status& found);
  // Platforms found by Discover.
  void AppendPlatforms(std::vector<Platform*>* out);

  // The running session, or a new one. Where the daemon has pools, what cannot be in one (`sharing`)
  // has another session than what can.
  using Sharing = BrokerConnection::Sharing;
  absl::StatusOr<std::shared_ptr<Session>> GetSession(Sharing sharing = Sharing::kNeedsWorker);
  // True if contexts of processors may be in the daemon's pools.
  bool pools_processors();
  // A session was lost: what Discover was told may no longer be so.
  bool ever_lost();
  // A session, and so a worker, for one context alone, which may be ended by itself
  // (CloseSession).
  absl::StatusOr<std::shared_ptr<Session>> OpenSeparateSession();
  // GetSession does not give this one any more. It goes on until its last context is gone.
  void DropSession(const Session& session);
  // Takes a session back whose context is gone: the next separate session, so that what its worker
  // still does may end.
  void KeepSession(std::shared_ptr<Session> session) ABSL_LOCKS_EXCLUDED(spare_mu_);
  // Tells the daemon that the worker of a lost session must be gone soon, whatever it does.
  void CloseSession(const Session& session);

 private:
  friend class ForkGuard;

  absl::Status DiscoverLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<std::shared_ptr<Session>> StartLocked(Sharing sharing)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void SendDevicesLocked(Session& session) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<OpenedTransport> ConnectLocked(Sharing sharing) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void PrepareForkLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void LoseInForkedChildLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const EndpointAddress address_;

  mutable absl::Mutex mu_;
  bool discovered_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status last_failure_ ABSL_GUARDED_BY(mu_);
  absl::Status told_ ABSL_GUARDED_BY(mu_);  // By IsNews.
  absl::Time asked_until_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
  std::vector<Platform*> platforms_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<BrokerConnection> broker_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<Session> session_ ABSL_GUARDED_BY(mu_);  // The latest,
  std::shared_ptr<Session> pooled_ ABSL_GUARDED_BY(mu_);   // and in a pool.
  bool replaced_ ABSL_GUARDED_BY(mu_) = false;             // It is not the first.
  // All there were: a lost one may still be held by contexts when the process forks.
  std::vector<std::weak_ptr<Session>> sessions_ ABSL_GUARDED_BY(mu_);
  // While the process forks: the sessions, and their locks.
  std::vector<std::shared_ptr<Session>> forking_ ABSL_GUARDED_BY(mu_);
  ForkLocks fork_locks_ ABSL_GUARDED_BY(mu_);
  absl::Mutex spare_mu_;  // A leaf.
  std::vector<std::shared_ptr<Session>> spares_ ABSL_GUARDED_BY(spare_mu_);
};

// All platforms of all endpoints that answer. Empty in a worker (SLUICE_WORKER=1): it must never
// use Sluice's own driver.
std::vector<Platform*> AllPlatforms();
// For properties without one: "the platform that is selected is implementation-defined" (OpenCL 3.0
// section 4.4). The first; null if there is none.
Platform* DefaultPlatform();

}  // namespace sluice::client
