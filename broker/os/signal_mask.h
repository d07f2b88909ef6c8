// SPDX-License-Identifier: Apache-2.0
// Signal masks of threads; the driver's own have every signal but faults blocked (threads.h). A
// mask may be used from any thread.
#pragma once

#include <cstdint>

namespace sluice::os {

// The calling thread's signal mask as it is when this is made. Nothing where there are no signals.
class SignalMask {
 public:
  SignalMask();

 private:
  friend class ScopedSignalMask;
  uint64_t mask_[16] = {};
};

// While it lives, this thread has that mask: for code of the application on a thread of the
// driver's. Also given back if the thread exits meanwhile.
class ScopedSignalMask {
 public:
  explicit ScopedSignalMask(const SignalMask& mask);
  ~ScopedSignalMask();
  ScopedSignalMask(const ScopedSignalMask&) = delete;
  ScopedSignalMask& operator=(const ScopedSignalMask&) = delete;

 private:
  SignalMask before_;
};

}  // namespace sluice::os
