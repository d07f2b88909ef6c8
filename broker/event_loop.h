// SPDX-License-Identifier: Apache-2.0
//
// The broker's one thread of work: descriptors that become ready, timers, and tasks that other
// threads hand in. Everything that owns a socket or a process lives on this thread and needs no
// lock.
//
// Owner: the Broker. Loop thread only, but for Post and Quit, which any thread may call. The loop
// trusts nothing about descriptors: a callback learns only that its descriptor wants attention.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "broker/os/poller.h"
#include "broker/os/thread_checker.h"

namespace sluice::broker {

class EventLoop {
 public:
  using WatchId = uint64_t;  // 0 is no watch.
  using TimerId = uint64_t;  // 0 is no timer.
  using Task = std::function<void()>;

  static absl::StatusOr<std::unique_ptr<EventLoop>> Create();

  // Calls `on_readable` whenever `fd` can be read or is at its end, until Unwatch. The descriptor
  // stays the caller's and must be unwatched before it is closed. 0 if the kernel refuses (logged).
  WatchId Watch(int fd, Task on_readable);
  // The same when a stream's other end hangs up; bytes that wait to be read stay unread.
  WatchId WatchHangUp(int fd, Task on_hang_up);
  void Unwatch(WatchId* id);  // Sets it to 0; does nothing if it is 0.

  // Calls `task` once, `delay_ms` from now.
  TimerId AddTimer(int64_t delay_ms, Task task);
  void CancelTimer(TimerId* id);  // Sets it to 0; does nothing if it is 0.

  void Post(Task task) ABSL_LOCKS_EXCLUDED(mutex_);  // Thread-safe.

  // Until Quit. The calling thread is the loop thread from now on.
  void Run();
  void Quit();  // Thread-safe.

 private:
  struct Watched {
    int fd;
    std::shared_ptr<Task> on_readable;  // Shared: it may remove its own watch while it runs.
  };

  explicit EventLoop(std::unique_ptr<os::Poller> poller) : poller_(std::move(poller)) {}

  WatchId WatchFor(os::Poller::Interest interest, int fd, Task task);
  int MillisecondsToNextTimer() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(thread_);
  void RunDueTimers() ABSL_EXCLUSIVE_LOCKS_REQUIRED(thread_);
  void RunPosted() ABSL_LOCKS_EXCLUDED(mutex_);

  const std::unique_ptr<os::Poller> poller_;  // Constant after construction.

  os::ThreadChecker thread_;
  bool quit_ ABSL_GUARDED_BY(thread_) = false;
  uint64_t next_id_ ABSL_GUARDED_BY(thread_) = 1;
  std::map<WatchId, Watched> watches_ ABSL_GUARDED_BY(thread_);
  // By their time on the monotonic clock, in ms.
  std::map<std::pair<int64_t, TimerId>, Task> timers_ ABSL_GUARDED_BY(thread_);
  std::map<TimerId, int64_t> timer_due_ms_ ABSL_GUARDED_BY(thread_);

  absl::Mutex mutex_;
  std::vector<Task> posted_ ABSL_GUARDED_BY(mutex_);
};

// Milliseconds of the monotonic clock.
int64_t MonotonicMs();

}  // namespace sluice::broker
