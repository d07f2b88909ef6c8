// SPDX-License-Identifier: Apache-2.0
#include "daemon/builds.h"

#include <utility>

namespace sluice {

void Builds::Post(std::function<void()> work) {
  absl::MutexLock lock(&mu_);
  work_.push_back(std::move(work));
  changed_.Signal();
  if (!thread_.joinable()) thread_ = std::thread([this] { Loop(); });
}

Builds::~Builds() {
  std::thread thread;
  {
    absl::MutexLock lock(&mu_);
    stop_ = true;
    changed_.Signal();
    thread = std::move(thread_);
  }
  if (thread.joinable()) thread.join();
}

void Builds::Loop() {
  while (true) {
    std::function<void()> next;
    {
      absl::MutexLock lock(&mu_);
      while (work_.empty() && !stop_) changed_.Wait(&mu_);
      if (stop_) return;
      next = std::move(work_.front());
      work_.pop_front();
    }
    next();
  }
}

}  // namespace sluice
