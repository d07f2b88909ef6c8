// SPDX-License-Identifier: Apache-2.0
#include "client_icd/sharing/gl/fence_waiters.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "absl/synchronization/notification.h"
#include "broker/os/threads.h"
#include "client_icd/base/client_log.h"
#include "client_icd/sharing/core/exit_gate.h"

namespace sluice::client::sharing {
namespace {

// From the check of a fence to the wait for it; a machine under load may need some of it.
constexpr absl::Duration kMostToBegin = absl::Milliseconds(100);
// Between two looks at all fences that no thread waits for.
constexpr absl::Duration kLookInterval = absl::Milliseconds(1);

}  // namespace

struct FenceWaiters::Beginning {
  absl::Notification done;
  std::atomic<bool> ended{false};
  int thread = 0;
  cl_int status = CL_OUT_OF_RESOURCES;
};

struct FenceWaiters::Looked {
  Fence fence;
  std::shared_ptr<Beginning> beginning;
  absl::Time deadline;
};

FenceWaiters::~FenceWaiters() {
  absl::MutexLock lock(&mu_);
  if (looker_ != nullptr) waiters_.push_back(looker_);
  for (const std::shared_ptr<Waiter>& waiter : waiters_) {
    if (!RunLast(waiter->thread, waiter->id, [waiter] { waiter->contexts.reset(); })) {
      static_cast<void>(waiter->contexts.release());
    }
  }
}

std::shared_ptr<FenceWaiters::Waiter> FenceWaiters::Free() {
  absl::MutexLock lock(&mu_);
  const auto free = std::find_if(waiters_.begin(), waiters_.end(),
                                 [](const auto& waiter) { return waiter->waits.load() == 0; });
  if (free != waiters_.end()) {
    (*free)->waits.store(1);
    return *free;
  }
  if (waiters_.size() >= max_waiters_) return nullptr;
  waiters_.push_back(std::make_shared<Waiter>());
  waiters_.back()->waits.store(1);
  return waiters_.back();
}

std::shared_ptr<FenceWaiters::Waiter> FenceWaiters::Looker() {
  absl::MutexLock lock(&mu_);
  if (looker_ == nullptr) looker_ = std::make_shared<Waiter>();
  looker_->waits.fetch_add(1);
  return looker_;
}

bool FenceWaiters::IsBusy() {
  absl::MutexLock lock(&mu_);
  return (looker_ != nullptr && looker_->waits.load() != 0) ||
         std::any_of(waiters_.begin(), waiters_.end(),
                     [](const auto& waiter) { return waiter->waits.load() != 0; });
}

bool FenceWaiters::MakeContexts(const GlContextRef& ref, const std::shared_ptr<Waiter>& waiter) {
  absl::StatusOr<std::unique_ptr<GlBinding>> binding = MakeGlBinding(ref);
  if (!binding.ok()) return false;
  absl::StatusOr<std::unique_ptr<GlContexts>> made = GlContexts::Make(*std::move(binding));
  if (!made.ok()) return false;
  waiter->contexts = *std::move(made);
  waiter->id = std::this_thread::get_id();
  waiter->contexts->WhenDisplayCloses([weak = std::weak_ptr<Waiter>(waiter)] {
    const std::shared_ptr<Waiter> living = weak.lock();
    if (living == nullptr) return;
    living->closing.store(true);
    // They may have gone in the meantime, by another thread's last release.
    living->thread.Post([living] {
      if (living->contexts != nullptr) living->contexts->Close();
    });
  });
  return true;
}

void FenceWaiters::MakeNow() {
  std::vector<std::shared_ptr<Waiter>> both;
  {
    absl::MutexLock lock(&mu_);
    max_waiters_ = 1;
    waiters_.push_back(std::make_shared<Waiter>());
    looker_ = std::make_shared<Waiter>();
    both = {waiters_.back(), looker_};
  }
  // Contexts that cannot be made now may be by the first fence.
  std::vector<std::shared_ptr<absl::Notification>> made;
  for (const std::shared_ptr<Waiter>& waiter : both) {
    const auto done = std::make_shared<absl::Notification>();
    const bool posted = waiter->thread.Post([ref = ref_, waiter, done] {
      static_cast<void>(MakeContexts(ref, waiter));
      done->Notify();
    });
    if (posted) made.push_back(done);
  }
  const absl::Time deadline = absl::Now() + kGlPatience;
  for (const auto& one : made) one->WaitForNotificationWithTimeout(deadline - absl::Now());
}

cl_int FenceWaiters::Begin(const GlContextRef& ref, const std::shared_ptr<Waiter>& waiter,
                           const Fence& fence) {
  if (ExitGate::OfProcess().closed()) return CL_OUT_OF_RESOURCES;  // It stood in line.
  if (waiter->contexts == nullptr && !MakeContexts(ref, waiter)) return CL_OUT_OF_RESOURCES;
  const bool closed = waiter->closing.load() || waiter->contexts->closed();
  return closed ? CL_INVALID_GL_OBJECT : fence.begin(*waiter->contexts);
}

cl_int FenceWaiters::Start(GlShare& share, Fence fence) {
  const std::shared_ptr<Waiter> waiter = Free();
  if (waiter == nullptr) {
    if (fence.hold != nullptr) fence.hold(share);
    return StartLooking(std::move(fence));
  }
  const bool own = fence.own;
  auto beginning = std::make_shared<Beginning>();
  const bool posted =
      waiter->thread.Post([ref = ref_, waiter, beginning, fence = std::move(fence)] {
        const cl_int status = Begin(ref, waiter, fence);
        beginning->status = status;
        beginning->thread = os::ThisThreadNumber();
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
  beginning->done.WaitForNotification();
  const absl::Time enough = absl::Now() + kMostToBegin;
  while (!own && beginning->status == CL_SUCCESS && !beginning->ended.load() &&
         !os::ThreadSleeps(beginning->thread) && absl::Now() < enough) {
    std::this_thread::yield();
  }
  return beginning->status;
}

cl_int FenceWaiters::StartLooking(Fence fence) {
  const std::shared_ptr<Waiter> looker = Looker();
  auto beginning = std::make_shared<Beginning>();
  {
    absl::MutexLock lock(&looker->mu);
    if (!looker->looks && !looker->thread.Post([ref = ref_, looker] { PollAll(ref, looker); })) {
      looker->waits.fetch_sub(1);
      return CL_OUT_OF_RESOURCES;
    }
    looker->looks = true;
    looker->arrived.push_back({std::move(fence), beginning, absl::Now() + kGlPatience});
  }
  beginning->done.WaitForNotification();
  return beginning->status;
}

// One job for as long as there are fences, so that the exit waits for it as for a wait.
void FenceWaiters::PollAll(const GlContextRef& ref, const std::shared_ptr<Waiter>& looker) {
  const auto look = [&looker](Looked& one) {
    std::optional<cl_int> status = CL_INVALID_GL_OBJECT;
    if (!looker->closing.load()) status = one.fence.look(*looker->contexts);
    if (!status && absl::Now() >= one.deadline) {
      ClientLog(ClientLogLevel::kWarning, "OpenGL did not finish in time");
      status = CL_OUT_OF_RESOURCES;
    }
    if (!status) return false;
    one.fence.done(*status);
    looker->waits.fetch_sub(1);
    return true;
  };
  std::vector<Looked> pending;
  while (true) {
    std::vector<Looked> arrived;
    {
      const auto any = [](Waiter* waiter) ABSL_EXCLUSIVE_LOCKS_REQUIRED(waiter->mu) {
        return !waiter->arrived.empty();
      };
      absl::MutexLock lock(&looker->mu);
      if (!pending.empty()) {
        looker->mu.AwaitWithTimeout(absl::Condition(+any, looker.get()), kLookInterval);
      }
      if (pending.empty() && looker->arrived.empty()) {
        looker->looks = false;
        return;
      }
      arrived.swap(looker->arrived);
    }
    // No call into GL any more. Those that have just come are refused by Begin.
    if (ExitGate::OfProcess().given_up()) pending.clear();
    for (Looked& one : arrived) {
      const cl_int status = Begin(ref, looker, one.fence);
      one.beginning->status = status;
      one.beginning->done.Notify();
      if (status == CL_SUCCESS) {
        pending.push_back(std::move(one));
      } else {
        looker->waits.fetch_sub(1);
      }
    }
    std::erase_if(pending, look);
  }
}

}  // namespace sluice::client::sharing
