// SPDX-License-Identifier: Apache-2.0
// Keeps a thread of ours out of a graphics driver that the process's exit is taking down: on an
// NVIDIA H200 (driver 580.159.04) three of 37 programs that ended without releasing everything
// crashed in a GL call of such a thread. From exit() on no job begins, and the exit waits for the
// one that runs, but not long. Thread-safe.
#pragma once

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace sluice::sharing {

class ExitGate {
 public:
  // The process's. Never destroyed.
  static ExitGate& OfProcess();
  // Has exit() close it, before what has been loaded or registered by now is taken down. To be
  // called when the driver has made what it makes.
  static void CloseAtExit();

  // False once it is closed. True: Leave must follow.
  bool Enter();
  void Leave();
  bool closed();

  // Waits until all have left; false if `timeout` is over first.
  bool Close(absl::Duration timeout);

 private:
  absl::Mutex mu_;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  int inside_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace sluice::sharing
