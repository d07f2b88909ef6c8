// SPDX-License-Identifier: Apache-2.0
//
// Tasks for the loop thread. Connections take turns, one task each, and the queue runs for a short
// while at a time: so a connection that asks for much delays neither others nor the rest of the
// loop's work. The number of waiting calls is bounded: a few of each connection, and more while all
// together are not too many. Each costs gRPC some 20 KiB even when its caller has given it up.
// Closing the queue runs the waiting tasks at once, and no more are taken. EventLoop::Post alone
// would lose tasks posted after the loop's end.
//
// Owner: ResourceService. Thread-safe; tasks run on the loop thread, and those that still wait
// where the queue is closed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "broker/event_loop.h"
#include "broker/fair_queue.h"

namespace sluice::broker {

class LoopQueue {
 public:
  // The queue gives the loop back after the task that ends later than this.
  static constexpr int64_t kMostMsAtOnce = 2;

  // Bounds of waiting calls: of one connection, those that always may wait, and the most; of all
  // connections, those beyond the ones that always may.
  static constexpr size_t kAlwaysRoom = 16;
  static constexpr size_t kMostOfOne = 512;
  static constexpr size_t kMostShared = 2048;

  enum class Posted { kYes, kNoRoom, kClosed };

  explicit LoopQueue(EventLoop* loop) : loop_(loop) {}

  // Tasks of one connection run in the order in which they are posted. Unless the answer is kYes,
  // `task` will not run.
  Posted PostCall(uint64_t connection, std::function<void()> task) ABSL_LOCKS_EXCLUDED(mutex_);
  // For tasks that always need room: the end of a call that was posted. False: closed.
  bool Post(uint64_t connection, std::function<void()> task) ABSL_LOCKS_EXCLUDED(mutex_);
  void CloseAndRun() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Task {
    std::function<void()> run;
    uint64_t connection = 0;
    bool is_call = false;
  };

  void PushLocked(Task task) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::function<void()> Next() ABSL_LOCKS_EXCLUDED(mutex_);
  void RunSome() ABSL_LOCKS_EXCLUDED(mutex_);

  EventLoop* const loop_;
  absl::Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool posted_ ABSL_GUARDED_BY(mutex_) = false;
  FairQueue<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, size_t> calls_of_ ABSL_GUARDED_BY(mutex_);  // In tasks_; none is 0.
  size_t shared_ ABSL_GUARDED_BY(mutex_) = 0;  // Of them, those beyond kAlwaysRoom of each.
};

}  // namespace sluice::broker
