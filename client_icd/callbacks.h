// SPDX-License-Identifier: Apache-2.0
// Runs the application's callbacks (event, build, context notify, destructor, SVM free) on a thread
// kept for them, in the order they were added. They may call OpenCL, blocking calls included, and
// even end their thread. They have the signal mask of the thread that made this. Owned by Session.
// Thread-safe.
#pragma once

#include <utility>

#include "broker/os/signal_mask.h"
#include "client_icd/job_thread.h"

namespace sluice {

class Callbacks {
 public:
  using Callback = JobThread::Job;

  void Add(Callback callback) {
    thread_.Add([mask = mask_, callback = std::move(callback)] {
      const ScopedSignalMask of_the_application(mask);
      callback();
    });
  }
  void MakeInert() { thread_.MakeInert(); }  // In the child of a fork.

 private:
  const SignalMask mask_;
  JobThread thread_{"sluice-callback"};
};

}  // namespace sluice
