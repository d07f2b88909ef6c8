// SPDX-License-Identifier: Apache-2.0
#include "daemon/builds.h"

#include <utility>

namespace sluice {

void Builds::Post(std::function<void()> work) {
  absl::MutexLock lock(&mu_);
  work_.push_back(std::move(work));
  if (!thread_.joinable()) thread_ = std::thread([this] { Loop(); });
}

Builds::~Builds() {
  std::thread thread;
  {
    absl::MutexLock lock(&mu_);
    stop_ = true;
    thread = std::move(thread_);
  }
  if (thread.joinable()) thread.join();
}

void Builds::Loop() {
  while (true) {
    std::function<void()> next;
    {
      absl::MutexLock lock(&mu_);
      const auto awake = [this]()
                             ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return stop_ || !work_.empty(); };
      mu_.Await(absl::Condition(&awake));
      if (stop_) return;
      next = std::move(work_.front());
      work_.pop_front();
    }
    next();
  }
}

}  // namespace sluice
