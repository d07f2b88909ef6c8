// SPDX-License-Identifier: Apache-2.0
//
// Allows so many of something at once, and so many a second on average. To a caller that has spent
// more it says how long to wait. Budget: thread-compatible. SharedBudget: thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace sluice::gateway {

struct Allowance {
  double at_once = 0;
  double per_s = 0;
};

class Budget {
 public:
  explicit Budget(Allowance allowance) : allowance_(allowance), left_(allowance.at_once) {}

  // Takes as many as there are of `count`; how many there were not.
  double Take(double count, int64_t now_ms) {
    Earn(now_ms);
    const double taken = std::min(count, std::max(left_, 0.0));
    left_ -= taken;
    return count - taken;
  }
  // Takes all of `count`, on credit if need be; milliseconds until it is paid, 0 if it is.
  int64_t Spend(double count, int64_t now_ms) {
    Earn(now_ms);
    left_ -= count;
    return left_ >= 0 ? 0 : 1 + static_cast<int64_t>(-left_ * 1000 / allowance_.per_s);
  }

 private:
  void Earn(int64_t now_ms) {
    const int64_t passed_ms = since_ms_ == 0 ? 0 : now_ms - since_ms_;
    since_ms_ = now_ms;
    left_ = std::min(allowance_.at_once,
                     left_ + static_cast<double>(passed_ms) * allowance_.per_s / 1000);
  }

  const Allowance allowance_;
  double left_;
  int64_t since_ms_ = 0;
};

class SharedBudget {
 public:
  explicit SharedBudget(Allowance allowance) : budget_(allowance) {}
  int64_t Spend(double count, int64_t now_ms) {
    absl::MutexLock lock(&mu_);
    return budget_.Spend(count, now_ms);
  }

 private:
  absl::Mutex mu_;
  Budget budget_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sluice::gateway
