// SPDX-License-Identifier: Apache-2.0
// Bounds native calls that wait for the application and have no bound of their own: for a lock of
// the API's that one of its threads may have entered before it waits for OpenCL (Direct3D's). Such
// a call cannot be called back. So the command that it belongs to is ended beside it: the watch
// looks every second whether a turn is late, and tells its owner. When the call returns after all,
// its thread hears that the turn was given up, touches nothing for it and goes on with the next.
//
//   in line --Start--> working --BeginWait--> waiting
//      |                  ^                      |
//      |                  +------- EndWait ------+
//      v                                         v
//   given up, if it stands there for its         given up, a tick after its deadline
//   bound while no thread gets on
//
// Only in these two states a turn is given up: what works may take its time. The watch's thread
// runs while there are turns. Thread-safe. Not for processes that fork.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client_icd/session/job_thread.h"

namespace sluice::client::sharing {

class NativeWatch {
 public:
  class Turn;

  // Literals: the thread's name, and what was waited for in vain, for the log.
  NativeWatch(const char* thread, const char* reason, absl::Duration tick = absl::Seconds(1));
  ~NativeWatch();

  const char* reason() const { return reason_; }
  // A turn in line. `give_up` is called once at most, on the watch's thread, and must not wait.
  std::shared_ptr<Turn> AddTurn(absl::Duration bound, std::function<void()> give_up);

 private:
  struct State {
    explicit State(absl::Duration every) : tick(every) {}
    const absl::Duration tick;
    absl::Mutex mu;
    std::list<Turn*> turns ABSL_GUARDED_BY(mu);  // Each leaves before it goes.
    // Counts whatever a thread has done in any turn: while it stands still, so do they.
    uint64_t moves ABSL_GUARDED_BY(mu) = 0;
    int stuck ABSL_GUARDED_BY(mu) = 0;  // Threads in calls of turns that were given up.
    bool watching ABSL_GUARDED_BY(mu) = false;
    bool closed ABSL_GUARDED_BY(mu) = false;
  };
  static void Watch(const std::shared_ptr<State>& state);

  const char* const reason_;
  // Shared with the turns and the thread, which may outlive this.
  const std::shared_ptr<State> state_;
  JobThread thread_;
};

// One command's way through a native thread. Held by its owner and, for one call, by the native
// object.
class NativeWatch::Turn {
 public:
  Turn(std::shared_ptr<State> state, absl::Duration bound, std::function<void()> give_up);
  ~Turn();
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  // Before it is posted to a thread once more.
  void Requeue();
  // The thread has come to it: what it does next may wait until then. False if it was given up.
  bool Start(absl::Time deadline);
  // Around a call that may wait for the application. False if the turn was given up.
  bool BeginWait();
  bool EndWait();
  // From now on it cannot be given up. False if it was.
  bool End();
  bool given_up();

 private:
  friend class NativeWatch;
  enum class Phase { kInLine, kWorking, kWaiting, kGivenUp, kEnded };
  void QueueLocked(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mu);
  bool IsLateLocked(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mu);

  const std::shared_ptr<State> state_;
  const absl::Duration bound_;
  std::function<void()> give_up_;  // Taken by whoever gives it up.
  Phase phase_ ABSL_GUARDED_BY(state_->mu) = Phase::kInLine;
  absl::Time due_ ABSL_GUARDED_BY(state_->mu);
  uint64_t moves_ ABSL_GUARDED_BY(state_->mu) = 0;  // In line: how many there were.
};

// Around one call that may wait for the application; `turn` may be null.
class NativeWait {
 public:
  explicit NativeWait(NativeWatch::Turn* turn) : turn_(turn) {
    if (turn_ != nullptr) turn_->BeginWait();
  }
  ~NativeWait() { End(); }
  NativeWait(const NativeWait&) = delete;
  NativeWait& operator=(const NativeWait&) = delete;

  // The call has returned. False: nothing of the command's may be touched any more.
  bool End() {
    if (turn_ != nullptr) in_time_ = std::exchange(turn_, nullptr)->EndWait();
    return in_time_;
  }

 private:
  NativeWatch::Turn* turn_;
  bool in_time_ = true;
};

}  // namespace sluice::client::sharing
