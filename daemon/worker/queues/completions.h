// SPDX-License-Identifier: Apache-2.0
// Watches driver events and reports their ends. The client hears of one by a Completion frame,
// written by the very driver thread that called back, and so does any part of the worker that waits
// for a step of a transfer.
//
// A driver's callback is a hint: the status is read from the event. A driver may call nobody back
// for events that fail because a user event did: SweepFailed() finds those. Callbacks also come in
// any order, even for an in-order queue. But an application may take the end of one command for the
// end of all before it (a blocking read, then the profile of the kernel). A queue's Lane puts the
// completions back in order.
//
// Some drivers call back late (DriverQuirks::calls_back_late). With set_polls nothing is registered
// with the driver, and the session thread looks itself (Poll), while it has nothing else to do. A
// driver that refuses a callback (Wine's) is treated so from then on.
//
// The driver is never called with the lock held: it may hold its own when it calls back.
// Thread-safe, but for Poll: session thread only.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/inlined_vector.h"
#include "absl/synchronization/mutex.h"
#include "broker/os/thread_checker.h"
#include "daemon/worker/cl_handle.h"
#include "daemon/worker/queues/in_flight.h"
#include "daemon/worker/queues/running_count.h"
#include "proto/frame.h"

namespace sluice::v1 {
class Completion;
}  // namespace sluice::v1

namespace sluice::worker {

class PrintfCapture;
class Replies;
class CompletionLane;

// Memory that a command uses until it has ended: the payload it writes from, or what it reads into.
struct Carried {
  wire::Frame frame;      // A write's payload lies in here.
  std::string read_data;  // A small read's result: becomes the completion's payload.
  // Kept a while longer if the command fails: a driver may tell a failure before its own
  // thread has done with what the command was given.
  std::shared_ptr<void> keep;
  // Of commands before it in its queue that have no event of their own.
  std::vector<std::unique_ptr<Carried>> earlier;
};

// The CL_PROFILING_COMMAND_* times of a command, by the clock of the driver that has run it.
struct EventTimes {
  uint64_t queued = 0;
  uint64_t submit = 0;
  uint64_t start = 0;
  uint64_t end = 0;
  uint64_t complete = 0;
};

// The place of a completion among those of its queue. (No member of Completions: as a default
// argument there it would be incomplete for GCC.)
struct CompletionOrder {
  std::shared_ptr<CompletionLane> lane;  // The queue's; null: on its own.
  bool after_all = false;                // Waits for all before it in a queue that is out of order.
  bool fails_as_ours = false;            // The driver's code for that is not ours.
  // The end of a later command in its queue in order says that this one has completed. It waits for
  // none that may fail while others go on, and the driver's faults end all of a context's commands.
  bool ends_with_later = false;
  // Nothing but the device is awaited, as far as is known (turn_gate.h).
  bool can_run = false;
  cl_int runs_as = CL_RUNNING;  // Its status while it runs (DriverQuirks::never_says_running).
  CommandShare share = {};      // Counted as in flight until it has ended.
  // DriverQuirks::kernels_end_late: Poll does not ask for it, a mark behind it tells of its end.
  bool ends_late = false;
  bool tells_of_late = false;  // It is such a mark.
};

class Completions {
 public:
  using LaneRef = std::shared_ptr<CompletionLane>;

  using Order = CompletionOrder;

  Completions(Replies* replies, PrintfCapture* printf) : replies_(replies), printf_(printf) {}

  static LaneRef MakeLane(bool in_order);

  // The counter of those that can run. Before the first command; outlives this.
  void set_running(RunningCount* running) { running_ = running; }

  // The session is one of a pool's: it ends before the process, so that a driver that calls back
  // late must find nothing. `on_failed` hears of each command that ended with an error of the
  // driver's. Before the first command.
  void SetPooled(std::function<void()> on_failed) {
    pooled_ = true;
    on_failed_ = std::move(on_failed);
  }
  // From now on no callback of the driver's reaches this; returns when none is at work in it.
  void ForgetCallbacks();
  // Nothing that was given to the driver is looked after any more.
  bool idle();

  // From now on events are looked after by Poll.
  void set_polls() { polls_.store(true, std::memory_order_relaxed); }
  bool polls() const { return polls_.load(std::memory_order_relaxed); }

  struct Polled {
    bool any_ended = false;
    bool any_left = false;
  };
  // Delivers what has ended, as far as a few looks at the oldest events tell.
  Polled Poll();

  // Sends a Completion for `event_id` when `event` ends (event_id 0: only lets go of `carried`).
  void Publish(cl_event event, uint64_t event_id, bool profiling, std::unique_ptr<Carried> carried,
               Order order = {});

  // Calls then(status) on a driver's thread, or on ours, when `event` has ended. It must not wait.
  void Then(cl_event event, std::function<void(cl_int status)> then, Order order = {});

  // A Completion for what ended without a driver event.
  void SendCompletion(uint64_t event_id, cl_int status, const EventTimes* times = nullptr);

  // Delivers every event that has failed; call after a user event was set to an error.
  void SweepFailed();
  // Delivers every event that has ended in whatever way.
  void SweepEnded();

  // The longest time for which a command has run, as the driver says, since this first saw it run
  // and, where that is less clear, since its queue last ended one. 0: none runs. One thread's, at
  // intervals (kernel_watch.h).
  int64_t LongestRunNs();

  // Poll asks also for what ends late, of what there is now: nothing behind it tells.
  void AskForAll(const LaneRef& lane);

  // True if nothing of the lane waits to be delivered.
  bool AllDelivered(const LaneRef& lane);

  // False as long as no event of the session can have failed.
  bool any_failed() const { return any_failed_.load(std::memory_order_relaxed); }

 private:
  friend class CompletionLane;
  struct Pending;
  using PendingRef = std::shared_ptr<Pending>;

  static void CL_CALLBACK OnDriverCallback(cl_event event, cl_int status, void* pending);
  static void CL_CALLBACK OnPooledCallback(cl_event event, cl_int status, void* number);
  cl_int AskForCallback(const PendingRef& pending, cl_event event);
  void Watch(const PendingRef& pending, cl_event event);
  bool CountsLocked(const Pending& pending) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void UnlinkLocked(Pending* pending) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Something was failed just now: what reads as complete may fail yet.
  bool in_doubt() const;
  static constexpr size_t kLooksAtOnce = 8;
  using Looks =
      absl::InlinedVector<std::pair<PendingRef, std::shared_ptr<const UniqueCl<cl_event>>>,
                          2 * kLooksAtOnce>;
  static bool IsBehindOneOf(const Looks& looks, const Pending& pending);
  static Pending* CollectLocked(Pending* from, Looks* looks);
  // Of the lane of `oldest`, which has ended: the newest that has, as far as some looks tell.
  std::pair<PendingRef, cl_int> NewestEnded(const PendingRef& oldest, cl_int status);
  // `status`: of the event, as it was just read.
  void OnEnded(const PendingRef& pending, cl_int status);
  void DeliverLane(CompletionLane* lane);
  void Deliver(Pending* pending, cl_event event, cl_int status);
  void LeaveBehind(const Carried& carried);
  // Up to `end`, if that is still in the list; null: all.
  void Sweep(bool only_failed, const Pending* end);
  // Reports all that ended before that command.
  void ReportEndedBefore(const Pending* end);

  Replies* const replies_;
  PrintfCapture* const printf_;
  bool pooled_ = false;  // Constant from the first command on, as the next.
  std::function<void()> on_failed_;
  std::atomic<bool> any_failed_ = false;
  std::atomic<int64_t> last_failure_ns_ = 0;
  std::atomic<bool> polls_ = false;
  absl::Mutex mu_;
  Pending* first_ ABSL_GUARDED_BY(mu_) = nullptr;  // All that have not ended, doubly linked,
  Pending* last_ ABSL_GUARDED_BY(mu_) = nullptr;   // oldest first.
  std::deque<std::shared_ptr<void>> left_behind_ ABSL_GUARDED_BY(mu_);  // Of failed commands.
  RunningCount* running_ = nullptr;                                     // Changed with mu_ held.
  os::ThreadChecker poller_;
  size_t polled_count_ ABSL_GUARDED_BY(mu_) = 0;
  Pending* poll_next_ ABSL_GUARDED_BY(mu_) =
      nullptr;  // Poll goes on here; null: behind the oldest.
};

// Of an event; the driver's error if it does not say.
cl_int StatusOf(cl_event event);

// Of an event that has ended; false if the driver gives none.
bool ReadProfiling(cl_event event, EventTimes* times);
// In the order of the constants that ask for them.
void AddTimes(const EventTimes& times, v1::Completion* completion);

}  // namespace sluice::worker
