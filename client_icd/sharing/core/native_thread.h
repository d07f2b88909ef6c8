// SPDX-License-Identifier: Apache-2.0
// A thread on which native objects are worked on: GL and EGL want one that has their context
// current, gralloc and daemon-owned resources one that may wait for a fence. Jobs run in the order
// they were posted, with no lock of the driver held; a job may wait, but only with a bound. Held by
// whoever posts. Thread-safe.
#pragma once

#include <utility>

#include "client_icd/session/job_thread.h"

namespace sluice::client::sharing {

class NativeWatch;

class NativeThread {
 public:
  explicit NativeThread(const char* name);  // A literal.
  virtual ~NativeThread();

  // By which jobs are given up whose calls may wait for the application without a bound; null: none
  // does. Lives as long as this.
  virtual NativeWatch* watch() { return nullptr; }

  // False if the job will not run: this is the child of a fork, or there is no thread to be had.
  virtual bool Post(JobThread::Job job);

 protected:
  // The thread does not end with this, and drops what is posted from now on.
  void LeaveRunning() { thread_.MakeInert(); }

 private:
  bool InForkedChild() const;

  const int owner_pid_;
  JobThread thread_;
};

}  // namespace sluice::client::sharing
