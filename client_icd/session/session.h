// SPDX-License-Identifier: Apache-2.0
// One worker, as the client sees it: its transport, its stream of commands, and what must be found
// by id. Made with the first context of an endpoint and shared by all of its contexts. When it is
// lost (the worker or the network is gone, or the peer broke the protocol) it stays lost. Every
// object of it is inert, calls answer CL_DEVICE_NOT_AVAILABLE, releases work, and the next
// clCreateContext makes a new one.
//
// Held by its endpoint, by every context, and by its reply thread. Thread-safe.
#pragma once

#include <CL/cl.h>
#include <CL/cl_ext.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "client_icd/base/fork_locks.h"
#include "client_icd/base/host_region.h"
#include "client_icd/base/map_shadow.h"
#include "client_icd/base/object.h"
#include "client_icd/session/callbacks.h"
#include "client_icd/session/command_stream.h"
#include "client_icd/session/creation_lease.h"
#include "client_icd/session/in_flight.h"
#include "client_icd/session/mirrors.h"
#include "client_icd/session/pending_command.h"
#include "client_icd/session/transport.h"

namespace sluice::client {

// The first id that a client gives to an object; below it are the devices of the snapshot.
inline constexpr uint64_t kFirstClientId = uint64_t{1} << 32;

// A transport, and the id by which the daemon knows its session; 0 for a remote one.
struct OpenedTransport {
  std::unique_ptr<Transport> transport;
  uint64_t daemon_id = 0;
};

// The application's code when the environment fails: the daemon is gone, refuses, or has no
// room.
cl_int ToClError(const absl::Status& status);

class Session : public std::enable_shared_from_this<Session> {
 public:
  // Starts the reply thread; null if the process can have no more threads.
  static std::shared_ptr<Session> Start(OpenedTransport opened);
  ~Session();

  uint64_t NextId() { return next_id_.fetch_add(1, std::memory_order_relaxed); }
  // The first of `count` consecutive ids.
  uint64_t NextIds(uint64_t count) { return next_id_.fetch_add(count, std::memory_order_relaxed); }

  uint64_t daemon_id() const { return daemon_id_; }
  CommandStream& stream() { return stream_; }
  Transport& transport() { return *transport_; }
  Callbacks& callbacks() { return callbacks_; }
  PendingDestinations& pending_destinations() { return pending_destinations_; }
  InFlight& in_flight() { return in_flight_; }
  CreationLease& creation_lease() { return creation_lease_; }
  Mirrors& mirrors() { return mirrors_; }
  ShadowPool& shadow_pool() { return *shadow_pool_; }

  bool lost() const { return transport_->lost(); }
  // The code of calls and commands once it is lost: CL_DEVICE_NOT_AVAILABLE, or, if it was
  // terminated, CL_CONTEXT_TERMINATED_KHR.
  cl_int lost_code() const { return lost_code_.load(std::memory_order_acquire); }
  bool terminated() const { return lost_code() == CL_CONTEXT_TERMINATED_KHR; }
  // clTerminateContextKHR: ends the session; everything pending has failed on return. False the
  // second time.
  bool Terminate();
  // The peer broke the protocol, or the transport failed: ends the session. Everything pending
  // fails soon after.
  void Lose(std::string_view reason) { transport_->Lose(reason); }
  // Before a fork.
  void HoldForFork(ForkLocks* locks, absl::Time deadline);
  // In the child of a fork: makes the session lost without touching a lock, a thread or a mapping.
  // Whoever calls it keeps the session for ever, since none of those may be given back either.
  void LoseInForkedChild();
  bool forked() const { return forked_.load(std::memory_order_relaxed); }
  // Everything pending has failed: tells the contexts. For CommandStream.
  void OnLost();

  // Tells the worker that the last reference to an object is gone. For destructors.
  void ReleaseObject(uint64_t id);
  void ReleaseEvent(uint64_t id);

  // Queues and contexts can be found by id, for replies that name them. An object takes itself out
  // in its destructor; what is found here has not begun to be destroyed. `listener` is a part of
  // the object.
  struct Listener {
    Ref<Object> object;  // Null: there is none.
    ReplyListener* listener = nullptr;
  };
  void RegisterObject(Object* object, ReplyListener* listener);
  void UnregisterObject(uint64_t id);
  Listener FindListener(uint64_t id, ObjectKind kind);
  Ref<Object> FindObject(uint64_t id, ObjectKind kind) { return FindListener(id, kind).object; }

  // Destructor callbacks outlive their object: `run` is queued when the worker says that `id` is
  // destroyed. The first call for an id sends WatchDestruction. Callbacks run in reverse order of
  // registration (section 5.2: a stack). When the session is lost, they run once the object is
  // released.
  void AddDestructorCallback(uint64_t id, Callbacks::Callback run);
  void RunDestructorCallbacks(uint64_t id);
  // Of this driver's own, for destructors, before ReleaseObject: `told` runs on whatever thread
  // finds out, before those callbacks, and must not wait. Once for an id.
  void NotifyWhenDestroyed(uint64_t id, Callbacks::Callback told);

 private:
  struct Registered {
    Object* object;
    ReplyListener* listener;
  };

  explicit Session(OpenedTransport opened);
  void PostWatch(uint64_t id);

  const std::unique_ptr<Transport> transport_;
  const uint64_t daemon_id_;
  Callbacks callbacks_;
  PendingDestinations pending_destinations_;
  InFlight in_flight_;
  CreationLease creation_lease_;
  Mirrors mirrors_;
  const std::shared_ptr<ShadowPool> shadow_pool_ = std::make_shared<ShadowPool>();
  CommandStream stream_;
  std::atomic<uint64_t> next_id_{kFirstClientId};
  std::atomic<bool> forked_{false};
  // Release in Terminate, before the transport is lost; pairs with the acquire in lost_code.
  std::atomic<cl_int> lost_code_{CL_DEVICE_NOT_AVAILABLE};

  absl::Mutex mu_;
  absl::flat_hash_map<uint64_t, Registered> objects_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<uint64_t, std::vector<Callbacks::Callback>> destructor_callbacks_
      ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<uint64_t, Callbacks::Callback> told_of_destruction_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_set<uint64_t> released_watched_
      ABSL_GUARDED_BY(mu_);  // Of those, whose end is told.
};

}  // namespace sluice::client
