// SPDX-License-Identifier: Apache-2.0
// Locks that are held while the process forks. A lock that one of our threads holds at that moment
// is never let go of in the child, which has no such thread. A program that has no thread of its
// own would hang there in a call that the parent could make.
//
// Owner: who owns the locks. The forking thread alone calls it: Hold before, one of the others
// afterwards, in the parent and in the child.
#pragma once

#include <new>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "broker/os/threads.h"

namespace sluice::client {

class ForkLocks {
 public:
  // Not beyond `deadline`: the thread may have been interrupted by a signal while it held the lock,
  // and its handler forks. Then the child takes its chance.
  void Hold(absl::Mutex* mu, absl::Time deadline) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    while (!mu->TryLock()) {
      if (absl::Now() > deadline) return;
      os::SleepNs(20'000);
    }
    held_.push_back(mu);
  }
  void Release() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    for (; !held_.empty(); held_.pop_back()) held_.back()->Unlock();
  }
  // Threads that wait for a lock in the parent are not there: it must not pass to them.
  void Renew() {
    for (; !held_.empty(); held_.pop_back()) new (held_.back()) absl::Mutex;
  }

 private:
  std::vector<absl::Mutex*> held_;
};

}  // namespace sluice::client
