// SPDX-License-Identifier: Apache-2.0
#include "client_icd/sharing/fence_waiters.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "absl/synchronization/notification.h"
#include "broker/os/threads.h"
#include "client_icd/sharing/exit_gate.h"

namespace sluice::sharing {
namespace {

// From the check of a fence to the wait for it; a machine under load may need some of it.
constexpr absl::Duration kMostToBegin = absl::Milliseconds(100);

}  // namespace

FenceWaiters::~FenceWaiters() {
  absl::MutexLock lock(&mu_);
  for (const std::shared_ptr<Waiter>& waiter : waiters_) {
    if (!RunLast(waiter->thread, waiter->id, [waiter] { waiter->contexts.reset(); })) {
      static_cast<void>(waiter->contexts.release());
    }
  }
}

std::shared_ptr<FenceWaiters::Waiter> FenceWaiters::LeastBusy() {
  absl::MutexLock lock(&mu_);
  const auto least = std::min_element(
      waiters_.begin(), waiters_.end(),
      [](const auto& a, const auto& b) { return a->waits.load() < b->waits.load(); });
  if (least != waiters_.end() && ((*least)->waits.load() == 0 || waiters_.size() == kMaxWaiters)) {
    (*least)->waits.fetch_add(1);
    return *least;
  }
  waiters_.push_back(std::make_shared<Waiter>());
  waiters_.back()->waits.store(1);
  return waiters_.back();
}

bool FenceWaiters::IsBusy() {
  absl::MutexLock lock(&mu_);
  return std::any_of(waiters_.begin(), waiters_.end(),
                     [](const auto& waiter) { return waiter->waits.load() != 0; });
}

cl_int FenceWaiters::Begin(const GlContextRef& ref, const std::shared_ptr<Waiter>& waiter,
                           const Fence& fence) {
  if (ExitGate::OfProcess().closed()) return CL_OUT_OF_RESOURCES;  // It stood in line.
  if (waiter->contexts == nullptr) {
    absl::StatusOr<std::unique_ptr<GlBinding>> binding = MakeGlBinding(ref);
    if (!binding.ok()) return CL_OUT_OF_RESOURCES;
    absl::StatusOr<std::unique_ptr<GlContexts>> made = GlContexts::Make(*std::move(binding));
    if (!made.ok()) return CL_OUT_OF_RESOURCES;
    waiter->contexts = *std::move(made);
    waiter->id = std::this_thread::get_id();
    waiter->contexts->WhenDisplayCloses([weak = std::weak_ptr<Waiter>(waiter)] {
      const std::shared_ptr<Waiter> living = weak.lock();
      if (living == nullptr) return;
      // They may have gone in the meantime, by another thread's last release.
      living->thread.Post([living] {
        if (living->contexts != nullptr) living->contexts->Close();
      });
    });
  }
  return waiter->contexts->closed() ? CL_INVALID_GL_OBJECT : fence.begin(*waiter->contexts);
}

cl_int FenceWaiters::Start(Fence fence) {
  struct Beginning {
    absl::Notification done;
    std::atomic<bool> ended{false};
    int thread = 0;
    cl_int status = CL_OUT_OF_RESOURCES;
  };
  const std::shared_ptr<Waiter> waiter = LeastBusy();
  const bool own = fence.own;
  auto beginning = std::make_shared<Beginning>();
  const bool posted =
      waiter->thread.Post([ref = ref_, waiter, beginning, fence = std::move(fence)] {
        const cl_int status = Begin(ref, waiter, fence);
        beginning->status = status;
        beginning->thread = ThisThreadNumber();
        beginning->done.Notify();
        if (status == CL_SUCCESS) {
          const cl_int ended = fence.wait(*waiter->contexts, absl::Now() + kGlPatience);
          beginning->ended.store(true);
          fence.done(ended);
        }
        waiter->waits.fetch_sub(1);
      });
  if (!posted) {
    waiter->waits.fetch_sub(1);
    return CL_OUT_OF_RESOURCES;
  }
  beginning->done
      .WaitForNotification();  // Bounded by the waits before it, each with its own bound.
  const absl::Time enough = absl::Now() + kMostToBegin;
  while (!own && beginning->status == CL_SUCCESS && !beginning->ended.load() &&
         !ThreadSleeps(beginning->thread) && absl::Now() < enough) {
    std::this_thread::yield();
  }
  return beginning->status;
}

}  // namespace sluice::sharing
