// SPDX-License-Identifier: Apache-2.0
//
// Tasks for the loop thread, one of each connection in turn and for a while at a time, so that
// neither other connections nor what else the loop has to do wait for one that asks for much. Can
// be closed: then those that wait are run at once, and no more are taken. EventLoop::Post alone
// would lose what was posted when the loop has ended.
//
// Owner: ResourceService. Thread-safe; tasks run on the loop thread, and those that still wait
// where the queue is closed.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "broker/event_loop.h"
#include "broker/fair_queue.h"

namespace sluice {

class LoopQueue {
 public:
  // A turn of the loop's is over with the task that ends after so long.
  static constexpr int64_t kMostMsAtOnce = 2;

  explicit LoopQueue(EventLoop* loop) : loop_(loop) {}

  // Of one connection in the order in which they are posted. False: closed, `task` will not run.
  bool Post(uint64_t connection, std::function<void()> task) ABSL_LOCKS_EXCLUDED(mutex_);
  void CloseAndRun() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  std::function<void()> Next() ABSL_LOCKS_EXCLUDED(mutex_);
  void RunSome() ABSL_LOCKS_EXCLUDED(mutex_);

  EventLoop* const loop_;
  absl::Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool posted_ ABSL_GUARDED_BY(mutex_) = false;
  FairQueue<std::function<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace sluice
