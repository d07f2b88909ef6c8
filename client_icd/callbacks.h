// SPDX-License-Identifier: Apache-2.0
// Runs the application's callbacks (event, build, context notify, destructor, SVM free) on a thread
// kept for them, in the order they were added. They may call OpenCL, blocking calls included. Owned
// by Session. Thread-safe.
#pragma once

#include <utility>

#include "client_icd/job_thread.h"

namespace sluice {

class Callbacks {
 public:
  using Callback = JobThread::Job;

  void Add(Callback callback) { thread_.Add(std::move(callback)); }
  void MakeInert() { thread_.MakeInert(); }  // In the child of a fork.

 private:
  JobThread thread_{"sluice-callback"};
};

}  // namespace sluice
