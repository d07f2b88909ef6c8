// SPDX-License-Identifier: Apache-2.0
// The address of an entry point for applications: the function, behind it what others have left to
// this thread (home_thread.h), and the thread's cancellation put off until it returns.
// pthread_cancel ends a thread in the next call of the system that is a cancellation point, of
// which no OpenCL function is one. In the middle of ours, which are noexcept, it would end the
// process. A thread that was cancelled ends at the application's own next cancellation point. A
// function that itself costs a few nanoseconds goes without (`quick` in icd_surface.inc), since
// this costs ten.
#pragma once

#include <CL/cl.h>

#include "broker/os/threads.h"
#include "client_icd/base/home_thread.h"

namespace sluice::client {

template <auto Function>
struct Uncancelled;
template <typename R, typename... Args, R(CL_API_CALL* Function)(Args...) noexcept>
struct Uncancelled<Function> {
  static R CL_API_CALL Call(Args... args) noexcept {
    const os::ScopedNoCancellation put_off;
    const HomeThread::ErrandsAfter errands;
    return Function(args...);
  }
};

// For tables of functions found by name.
template <auto Function>
void* UncancelledAddress() {
  return reinterpret_cast<void*>(&Uncancelled<Function>::Call);
}

}  // namespace sluice::client
