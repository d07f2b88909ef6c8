// SPDX-License-Identifier: Apache-2.0
//
// Calls of other threads (gRPC's) into the loop thread. Owner: the Broker. Thread-safe.
#pragma once

#include <functional>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "broker/event_loop.h"

namespace sluice::broker {

class LoopCalls {
 public:
  explicit LoopCalls(EventLoop* loop) : loop_(loop) {}

  // Runs `task` on the loop thread and waits for it. kCancelled if Stop comes first.
  absl::Status Run(std::function<void()> task) ABSL_LOCKS_EXCLUDED(mutex_);

  // Calls that wait return; later ones do not wait.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  EventLoop* const loop_;
  absl::Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace sluice::broker
