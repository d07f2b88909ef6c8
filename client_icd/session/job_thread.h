// SPDX-License-Identifier: Apache-2.0
// A thread that runs jobs, one after the other in the order they were added, and holds no lock
// while one runs. It is started when it is first asked for, is detached, and ends once its owner
// has gone and what was added has run. A job may end the thread: another one runs the rest.
// Thread-safe.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace sluice::client {

class JobThread {
 public:
  using Job = std::function<void()>;

  // `name` is a literal: the thread's, for debuggers.
  explicit JobThread(const char* name) : state_(std::make_shared<State>(name)) {}
  ~JobThread();
  JobThread(const JobThread&) = delete;
  JobThread& operator=(const JobThread&) = delete;

  // Starts the thread if it does not run, so that what is added from now on runs: unless a job ends
  // it and there is none for the rest, which then waits as Add says. False: none is to be had.
  bool Ready();
  // False: there is no thread to be had yet; the job runs once a later Add or Ready finds one.
  bool Add(Job job);

  // Additions are dropped from now on, without a lock, and the thread outlives its owner: in the
  // child of a fork, which has none, or where a thread's end could do harm.
  void MakeInert() { inert_.store(true, std::memory_order_relaxed); }

 private:
  // Shared with the thread, which may outlive the owner when the last reference goes in a job.
  struct State {
    explicit State(const char* thread_name) : name(thread_name) {}
    const char* const name;
    absl::Mutex mu;
    std::deque<Job> waiting ABSL_GUARDED_BY(mu);
    bool started ABSL_GUARDED_BY(mu) = false;
    bool closed ABSL_GUARDED_BY(mu) = false;  // The thread ends once it has run what was added.
  };
  struct InHand;
  static void ThreadEnded(void* in_hand);
  static bool StartLocked(const std::shared_ptr<State>& state)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(state->mu);
  static void Run(const std::shared_ptr<State>& state);

  const std::shared_ptr<State> state_;
  std::atomic<bool> inert_{false};
};

}  // namespace sluice::client
