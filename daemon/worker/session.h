// SPDX-License-Identifier: Apache-2.0
// One session: its objects, what it may use, and the parts that move its bytes. Made when the client
// has come. A worker of its own never serves a second client: the session goes with the process, and
// nothing needs to be cleaned up but by the kernel. A pool's session ends before (pool/).
//
// The object table belongs to the session thread (command_loop.h); the parts that other threads use
// are thread-safe and say so in their own headers.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "broker/os/thread_checker.h"
#include "daemon/worker/memory/heap.h"
#include "daemon/worker/memory/imports.h"
#include "daemon/worker/memory/keyed_mutex.h"
#include "daemon/worker/memory/mirrors.h"
#include "daemon/worker/memory/pins.h"
#include "daemon/worker/memory/transfers.h"
#include "daemon/worker/object_table.h"
#include "daemon/worker/programs/argument_records.h"
#include "daemon/worker/programs/builds.h"
#include "daemon/worker/queues/completions.h"
#include "daemon/worker/queues/kept_events.h"
#include "daemon/worker/queues/printf_capture.h"
#include "daemon/worker/queues/queue_hints.h"
#include "daemon/worker/queues/turn_gate.h"
#include "daemon/worker/quota.h"
#include "daemon/worker/replies.h"
#include "proto/handle_messages.h"

namespace sluice::worker {

class QueueObject;
struct PoolParts;

struct SessionOptions {
  uint64_t session_id = 0;
  Limits limits;
  bool sync = false;              // Debug: one command at a time (Enqueuer::Publish).
  std::string device_allow_list;  // Patterns, comma separated; empty: all.
  std::string records_directory;  // argument_records.h; empty: none.
  uint64_t cache_bytes = 0;       // compile_cache.h; 0: no bound.
  KeyedMutexOpener open_keyed_mutex = &OpenKeyedMutex;  // Tests have one of their own.
  PoolParts* pool = nullptr;                            // Of the pool that it is one of.
  uint64_t svm_address = wire::kSvmBaseAddress;         // Shared virtual memory from there on.
};

// A command that was refused, for the report of that.
struct Refusal {
  const char* call = "";
  uint64_t queue_id = 0;
  uint64_t event_id = 0;  // 0: it has none.
  bool named = false;     // Later commands may name the event.
};

// For statistics; relaxed.
struct SessionCounts {
  std::atomic<uint64_t> commands{0};  // Executed.
  std::atomic<uint64_t> objects{0};
  std::atomic<uint64_t> contexts{0};
  std::atomic<uint64_t> imported{0};  // Memory objects of native objects, by the way that their
  std::atomic<uint64_t> shadowed{0};  // bytes travel.
  std::atomic<uint64_t> staged{0};
  std::atomic<uint64_t> semaphored{0};  // Shadows whose semaphores have been used.
  std::atomic<uint64_t> mutexed{0};     // Shadows with a keyed mutex.
};

// The memory that the session's bytes lie in and pass through. Thread-safe, each as its header says.
struct SessionMemory {
  SessionMemory(int handle_channel, const SessionOptions& options, Replies* replies,
                Completions* completions);

  Heap heap;
  Heap svm_heap;
  Imports imports;
  Heap pinned_heap;
  Pins pins;
  Mirrors mirrors;
  Transfers transfers;
};

// The session thread's own.
struct SessionState {
  ObjectTable objects;
  std::vector<std::shared_ptr<DeviceObject>> devices;  // The host's.
  TurnGate turns;
  KeptEvents kept_events;
  SessionHints hints;
  std::vector<QueueObject*> touched;
  absl::Status violation;
  std::function<void(const std::string&)> on_lost_device;
  bool forgot_refused = false;
  bool more_follows = false;
};

class Session {
 public:
  // `handle_channel` and the mapping of the reply ring outlive the session.
  Session(const SessionOptions& options, int handle_channel, uint8_t* reply_ring);

  // Puts the host's devices into the table, under the ids of the snapshot.
  absl::Status AddDevices();
  // Puts them there under other ids, and takes out those without one (SetDevices).
  void SetDevices(const absl::flat_hash_map<uint64_t, uint64_t>& ids_by_key);

  const SessionOptions& options() const { return options_; }
  int handle_channel() const { return handle_channel_; }  // For descriptors to the client.
  // The calling thread is the session thread from now on: the one before it has done with it.
  void AttachThread() { thread_.Attach(); }
  // Session thread only.
  ObjectTable& objects() {
    thread_.Assert();
    return state_.objects;
  }
  // For a thread that looks while the session thread waits for the next command.
  ObjectTable& ObjectsForTesting() ABSL_NO_THREAD_SAFETY_ANALYSIS { return state_.objects; }
  Replies& replies() { return replies_; }
  PrintfCapture& printf() { return printf_; }
  Completions& completions() { return completions_; }
  const Completions& completions() const { return completions_; }
  Heap& heap() { return memory_.heap; }
  Heap& svm_heap() { return memory_.svm_heap; }
  Heap& pinned_heap() { return memory_.pinned_heap; }
  Pins& pins() { return memory_.pins; }
  Mirrors& mirrors() { return memory_.mirrors; }
  Quota& quota() { return quota_; }
  Imports& imports() { return memory_.imports; }
  Transfers& transfers() { return memory_.transfers; }
  // Session thread only.
  TurnGate& turns() {
    thread_.Assert();
    return pooled_turns_ != nullptr ? *pooled_turns_ : state_.turns;
  }
  // Before the session's first command.
  TurnGate& TurnsForTesting() ABSL_NO_THREAD_SAFETY_ANALYSIS { return state_.turns; }
  KeptEvents& kept_events() {
    thread_.Assert();
    return state_.kept_events;
  }
  Builds& builds() { return builds_; }
  ArgumentRecords& argument_records() { return argument_records_; }
  SessionHints& hints() {
    thread_.Assert();
    return state_.hints;
  }

  // New objects are counted; CL_OUT_OF_RESOURCES over the limit, CL_SUCCESS once inserted. An id
  // that is in use is the client's violation, reported by the loop's next look at violation().
  cl_int Add(uint64_t id, std::shared_ptr<Object> object);
  // CL_SUCCESS if Add would take the id now: asked before the driver is.
  cl_int CheckNew(uint64_t id);
  // False, and a violation, if the client has more in flight than it may.
  bool MayAccept();
  absl::Status TakeViolation() {
    thread_.Assert();
    return std::exchange(state_.violation, absl::OkStatus());
  }

  // Remembers a queue with unflushed commands; FlushTouched() flushes them, when the ring has run
  // dry.
  void Touch(QueueObject* queue);
  void Forget(QueueObject* queue);
  void FlushTouched();
  const std::vector<QueueObject*>& touched() const {
    thread_.Assert();
    return state_.touched;
  }
  // Enough is waiting in the ring that the command which is handled now is none of the last.
  bool more_follows() const {
    thread_.Assert();
    return state_.more_follows;
  }
  void set_more_follows(bool follows) {
    thread_.Assert();
    state_.more_follows = follows;
  }

  // Sends a LateError, unless it was refused for a wait list that has failed, and the failed
  // completion of its event if it has one.
  void ReportRefused(const Refusal& refusal, cl_int status);
  // A creation that nobody waited for has failed: tells the context, and puts a failed object in
  // the place of the new one.
  void ReportFailedCreation(const char* call, uint64_t context_id, uint64_t id, cl_int status);
  // Says how much may be created before a limit of the session is reached.
  void DescribeLease(pb::Lease* lease);
  // An event that the client names and nobody has may be a refused command's.
  bool forgot_refused() const {
    thread_.Assert();
    return state_.forgot_refused;
  }

  // The driver lacks a device that the client knows, or makes no context on it: for the broker,
  // which asks for devices again. Session thread only.
  void set_on_lost_device(std::function<void(const std::string&)> tell) {
    thread_.Assert();
    state_.on_lost_device = std::move(tell);
  }
  void TellOfLostDevice(const std::string& what) {
    thread_.Assert();
    if (state_.on_lost_device) state_.on_lost_device(what);
  }

  // For operators: the device of the session's first context. Any thread.
  void NameDevice(const std::string& name) {
    absl::MutexLock lock(&device_mu_);
    if (device_name_.empty()) device_name_ = name;
  }
  std::string device_name() const {
    absl::MutexLock lock(&device_mu_);
    return device_name_;
  }

  // As MakeUnaskedKernel makes them, once they were wanted. The build thread's.
  std::map<ArgInfoAsked, UniqueCl<cl_kernel>> unasked_kernels;

  SessionCounts counts;
  // Objects of the driver's whose end it is to tell us of.
  std::atomic<int> watched_by_driver = 0;
  // Threads of ours that wait in the driver for a queue (WhenAllEnded).
  std::atomic<int> finishers = 0;

 private:
  bool MayKeepFailed() const;

  const SessionOptions options_;
  const int handle_channel_;
  TurnGate* const pooled_turns_;
  Quota quota_;
  Replies replies_;
  PrintfCapture printf_;
  Completions completions_;
  SessionMemory memory_;
  Builds builds_;
  ArgumentRecords argument_records_;
  os::ThreadChecker thread_;  // The session thread.
  SessionState state_ ABSL_GUARDED_BY(thread_);

  mutable absl::Mutex device_mu_;
  std::string device_name_ ABSL_GUARDED_BY(device_mu_);
};

}  // namespace sluice::worker
