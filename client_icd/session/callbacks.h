// SPDX-License-Identifier: Apache-2.0
// Runs the application's callbacks (event, build, context notify, destructor, SVM free) on a thread
// kept for them, in the order they were added. They may call OpenCL, blocking calls included, and
// even end their thread. They have the signal mask of the thread that made this, and find nothing
// held any more of what went with the command or object that they tell of. Owned by Session.
// Thread-safe.
#pragma once

#include <CL/cl.h>

#include <utility>

#include "broker/os/signal_mask.h"
#include "client_icd/session/job_thread.h"
#include "client_icd/session/pending_releases.h"

namespace sluice::client {

class Callbacks {
 public:
  using Callback = JobThread::Job;

  // For a call that asks for one, before it has any effect. CL_OUT_OF_HOST_MEMORY ("if there is a
  // failure to allocate resources required by the OpenCL implementation on the host") where there
  // is no thread for it. From then on, Add's runs.
  cl_int Ready() { return thread_.Ready() ? CL_SUCCESS : CL_OUT_OF_HOST_MEMORY; }
  void Add(Callback callback) {
    thread_.Add([mask = mask_, callback = std::move(callback)] {
      PendingReleases::Await();
      const os::ScopedSignalMask of_the_application(mask);
      callback();
    });
  }
  void MakeInert() { thread_.MakeInert(); }  // In the child of a fork.

 private:
  const os::SignalMask mask_;
  JobThread thread_{"sluice-callback"};
};

}  // namespace sluice::client
