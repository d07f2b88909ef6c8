// SPDX-License-Identifier: Apache-2.0
// Waits for fences of the application, for as long as it takes the fence but never without a bound,
// beside the thread that copies. A fence may depend on commands that the application has not
// flushed.
//
// One wait for a fence of GL is one call on a thread of its own, which is what references the
// fence: once the call has begun, the fence may be deleted by name (glDeleteSync). That is when
// Start returns, as far as can be told: when the thread sleeps in it. EGL's calls reference nothing
// that can be relied on: what is waited for is a fence of ours behind the application's
// (egl_event.cc).
//
// No call waits for another fence to be signalled, which may come behind what the application does
// next. So when kMaxWaiters threads are in a wait, one more thread looks at all further fences in
// turn, which references nothing: a fence of ours behind it is looked at once it is deleted
// (gl_event.cc).
//
// If a new context waits for the GPU (GlCaps::new_contexts_wait), that would be a wait as well:
// there one thread that waits and the one that looks are made with the share, and no more.
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
#include <optional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client_icd/sharing/gl/gl_binding.h"
#include "client_icd/sharing/gl/gl_share.h"

namespace sluice::client::sharing {

class FenceWaiters {
 public:
  // One wait. `begin` looks whether there is such a fence: its code is Start's, unless it is
  // CL_SUCCESS. `wait` then ends with CL_SUCCESS once the fence is signalled, late with an error.
  // Where no thread is free for it, `hold` is called before `begin`, on the calling thread, and
  // instead of `wait` again and again `look`: nothing if the fence is not signalled yet.
  struct Fence {
    std::function<void(GlShare&)> hold;  // May be null.
    std::function<cl_int(GlContexts&)> begin;
    std::function<cl_int(GlContexts&, absl::Time deadline)> wait;
    std::function<std::optional<cl_int>(GlContexts&)> look;
    std::function<void(cl_int status)> done;
    // `wait` does not touch the application's fence: it may go as soon as `begin` has returned.
    bool own = false;
  };

  explicit FenceWaiters(GlContextRef ref) : ref_(ref) {}
  ~FenceWaiters();

  // Makes the only ones that there will ever be. Before the first Start.
  void MakeNow();
  // Returns once the wait has begun, or with the code of `begin`; `done` is called only in the
  // first case, on the waiter's thread.
  cl_int Start(GlShare& share, Fence fence);
  // A fence is waited for or looked at.
  bool IsBusy();

 private:
  static constexpr size_t kMaxWaiters = 16;
  struct Beginning;
  struct Looked;
  // A thread with a context of its own.
  struct Waiter {
    GlThread thread{"sluice-gl-fence"};
    std::unique_ptr<GlContexts> contexts;  // Its thread's, and the destructor's.
    std::thread::id id;                    // As contexts.
    std::atomic<int> waits{0};
    // Of the one that looks.
    std::atomic<bool> closing{false};
    absl::Mutex mu;
    std::vector<Looked> arrived ABSL_GUARDED_BY(mu);
    bool looks ABSL_GUARDED_BY(mu) = false;  // A job is posted that will see what arrives.
  };
  // One that waits for nothing; null if all do.
  std::shared_ptr<Waiter> Free();
  std::shared_ptr<Waiter> Looker();
  // On its thread. False if none can be made.
  static bool MakeContexts(const GlContextRef& ref, const std::shared_ptr<Waiter>& waiter);
  static cl_int Begin(const GlContextRef& ref, const std::shared_ptr<Waiter>& waiter,
                      const Fence& fence);
  cl_int StartLooking(Fence fence);
  static void PollAll(const GlContextRef& ref, const std::shared_ptr<Waiter>& looker);

  const GlContextRef ref_;  // The context with which the waiters' contexts share.
  absl::Mutex mu_;
  size_t max_waiters_ ABSL_GUARDED_BY(mu_) = kMaxWaiters;
  std::vector<std::shared_ptr<Waiter>> waiters_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<Waiter> looker_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sluice::client::sharing
