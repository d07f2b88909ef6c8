// SPDX-License-Identifier: Apache-2.0
// For ThreadSanitizer only. The distribution's abseil is not instrumented, so that the sanitizer
// does not see what its Mutex orders. The linker (--wrap) sends our calls through here, where it is
// told.
#include "absl/synchronization/mutex.h"

extern "C" {
void __tsan_acquire(void* address);
void __tsan_release(void* address);

void __real__ZN4absl7debian35Mutex4LockEv(absl::Mutex* mu);
void __wrap__ZN4absl7debian35Mutex4LockEv(absl::Mutex* mu) {
  __real__ZN4absl7debian35Mutex4LockEv(mu);
  __tsan_acquire(mu);
}

void __real__ZN4absl7debian35Mutex6UnlockEv(absl::Mutex* mu);
void __wrap__ZN4absl7debian35Mutex6UnlockEv(absl::Mutex* mu) {
  __tsan_release(mu);
  __real__ZN4absl7debian35Mutex6UnlockEv(mu);
}

void __real__ZN4absl7debian37CondVar4WaitEPNS0_5MutexE(absl::CondVar* changed, absl::Mutex* mu);
void __wrap__ZN4absl7debian37CondVar4WaitEPNS0_5MutexE(absl::CondVar* changed, absl::Mutex* mu) {
  __tsan_release(mu);
  __real__ZN4absl7debian37CondVar4WaitEPNS0_5MutexE(changed, mu);
  __tsan_acquire(mu);
}
}
