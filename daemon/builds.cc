// SPDX-License-Identifier: Apache-2.0
#include "daemon/builds.h"

#include <thread>
#include <utility>

namespace sluice {

void Builds::Post(std::function<void()> work) {
  absl::MutexLock lock(&mu_);
  work_.push_back(std::move(work));
  if (started_) return;
  started_ = true;
  std::thread([this] { Loop(); }).detach();  // The worker ends by _exit.
}

void Builds::Loop() {
  while (true) {
    std::function<void()> next;
    {
      absl::MutexLock lock(&mu_);
      mu_.Await(absl::Condition(
          +[](std::deque<std::function<void()>>* work) { return !work->empty(); }, &work_));
      next = std::move(work_.front());
      work_.pop_front();
    }
    next();
  }
}

}  // namespace sluice
