// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/programs/builds.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace sluice::worker {

bool Builds::Post(Work work) {
  absl::MutexLock lock(&mu_);
  if (waiting_.size() >= kMaxWaiting) return false;
  waiting_.push_back(std::move(work));
  changed_.SignalAll();
  if (!thread_.joinable()) thread_ = std::thread([this] { Loop(); });
  if (limit_ms_ != 0 && !watch_.joinable()) watch_ = std::thread([this] { Watch(); });
  return true;
}

void Builds::Stop() {
  std::deque<Work> dropped_after_unlock;
  absl::MutexLock lock(&mu_);
  stop_ = true;
  dropped_after_unlock.swap(waiting_);
  changed_.SignalAll();
}

Builds::~Builds() {
  std::thread thread;
  std::thread watch;
  {
    absl::MutexLock lock(&mu_);
    stop_ = true;
    changed_.SignalAll();
    thread = std::move(thread_);
    watch = std::move(watch_);
  }
  if (thread.joinable()) thread.join();
  if (watch.joinable()) watch.join();
}

void Builds::Loop() {
  while (true) {
    Work next;
    {
      absl::MutexLock lock(&mu_);
      while (waiting_.empty() && !stop_) changed_.Wait(&mu_);
      if (stop_) return;
      next = std::move(waiting_.front());
      waiting_.pop_front();
      running_ = true;
      give_up_ = std::move(next.give_up);
      if (limit_ms_ != 0) deadline_ = absl::Now() + absl::Milliseconds(limit_ms_);
      changed_.SignalAll();
    }
    std::function<void()> tell = next.run();
    std::function<void(const std::string&)> dropped_after_unlock;
    {
      absl::MutexLock lock(&mu_);
      deadline_ = absl::InfiniteFuture();
      dropped_after_unlock = std::move(give_up_);
      give_up_ = nullptr;
      if (given_up_) return;
    }
    tell();
    if (after_each_) after_each_();
    // All that it held goes before it is said to be over.
    next = {};
    tell = nullptr;
    dropped_after_unlock = nullptr;
    absl::MutexLock lock(&mu_);
    running_ = false;
    changed_.SignalAll();
  }
}

void Builds::Watch() {
  std::function<void(const std::string&)> give_up;
  {
    absl::MutexLock lock(&mu_);
    while ((!stop_ || running_) && absl::Now() < deadline_)
      changed_.WaitWithDeadline(&mu_, deadline_);
    if (stop_ && !running_) return;
    given_up_ = true;
    give_up = give_up_;
  }
  const std::string why = absl::StrCat(
      "the build took longer than the daemon allows (build_time_ms = ", limit_ms_, ")");
  if (give_up) give_up(why);
  if (on_overrun_) on_overrun_(why);
}

}  // namespace sluice::worker
