// SPDX-License-Identifier: Apache-2.0
// Waits for fences of the application, for as long as it takes the fence but never without a bound,
// beside the thread that copies: a fence may depend on commands that the application has not
// flushed.
//
// One wait for a fence of GL is one call on a thread of its own, which is what references the
// fence: once the call has begun, the fence may be deleted by name (glDeleteSync). That is when
// Start returns, as far as can be told: when the thread sleeps in it. EGL's calls reference nothing
// that can be relied on: what is waited for is a fence of ours behind the application's
// (egl_event.cc). Waits beyond kMaxWaiters at a time stand in line.
//
// At the process's exit no wait begins any more, and the exit waits for those that have begun, but
// not long (exit_gate.h); what their fences stand behind is flushed if the exiting thread can. A
// wait cannot be called off: one whose fence is not signalled by then stays in its call.
//
// Owned by a GlShare; a wait under way keeps its waiter. Thread-safe.
#pragma once

#include <CL/cl.h>

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client_icd/sharing/gl_binding.h"
#include "client_icd/sharing/gl_share.h"

namespace sluice::sharing {

class FenceWaiters {
 public:
  // One wait. `begin` looks whether there is such a fence: its code is Start's, unless it is
  // CL_SUCCESS. `wait` then ends with CL_SUCCESS once the fence is signalled, late with an error.
  struct Fence {
    std::function<cl_int(GlContexts&)> begin;
    std::function<cl_int(GlContexts&, absl::Time deadline)> wait;
    std::function<void(cl_int status)> done;
    // `wait` does not touch the application's fence: it may go as soon as `begin` has returned.
    bool own = false;
  };

  explicit FenceWaiters(GlContextRef ref) : ref_(ref) {}
  ~FenceWaiters();

  // Returns once the wait has begun, or with the code of `begin`; `done` is called only in the
  // first case, on the waiter's thread.
  cl_int Start(Fence fence);
  // A wait is under way or stands in line.
  bool IsBusy();

 private:
  static constexpr size_t kMaxWaiters = 16;
  // A thread with a context of its own.
  struct Waiter {
    GlThread thread{"sluice-gl-fence"};
    std::unique_ptr<GlContexts> contexts;  // Its thread's, and the destructor's.
    std::thread::id id;                    // As contexts.
    std::atomic<int> waits{0};
  };
  std::shared_ptr<Waiter> LeastBusy();
  static cl_int Begin(const GlContextRef& ref, const std::shared_ptr<Waiter>& waiter,
                      const Fence& fence);

  const GlContextRef ref_;  // What the waiters' contexts share with.
  absl::Mutex mu_;
  std::vector<std::shared_ptr<Waiter>> waiters_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sluice::sharing
