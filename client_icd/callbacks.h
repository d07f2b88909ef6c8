// SPDX-License-Identifier: Apache-2.0
// Runs the application's callbacks (event, build, context notify, destructor, SVM free) on a thread
// kept for them, one after the other in the order they were added. They may call OpenCL, blocking
// calls included. The thread holds no lock of the driver while one runs, and is started with the
// first. Owned by Session. Thread-safe.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace sluice {

class Callbacks {
 public:
  using Callback = std::function<void()>;

  ~Callbacks();

  void Add(Callback callback);

  // In the child of a fork, which has no such thread: additions are dropped from now on, without a
  // lock.
  void MakeInert() { inert_.store(true, std::memory_order_relaxed); }

 private:
  // Shared with the thread, which may outlive the session when the last reference goes in a
  // callback.
  struct State {
    absl::Mutex mu;
    std::deque<Callback> waiting ABSL_GUARDED_BY(mu);
    bool started ABSL_GUARDED_BY(mu) = false;
    bool closed ABSL_GUARDED_BY(mu) = false;  // The thread ends once it has run what was added.
  };
  static void Run(const std::shared_ptr<State>& state);

  const std::shared_ptr<State> state_ = std::make_shared<State>();
  std::atomic<bool> inert_{false};
};

}  // namespace sluice
