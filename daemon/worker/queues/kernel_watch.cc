// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/queues/kernel_watch.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "daemon/worker/queues/completions.h"

namespace sluice::worker {

KernelWatch::KernelWatch(Completions* completions, uint64_t limit_ms,
                         std::function<void(const std::string& why)> on_overrun)
    : completions_(completions),
      limit_ms_(limit_ms),
      on_overrun_(std::move(on_overrun)),
      thread_([this] { Loop(); }) {}

KernelWatch::~KernelWatch() {
  {
    absl::MutexLock lock(&mu_);
    stop_ = true;
  }
  thread_.join();
}

void KernelWatch::Loop() {
  const absl::Duration limit = absl::Milliseconds(limit_ms_);
  const absl::Duration interval = std::clamp(limit / 8, absl::Milliseconds(1), absl::Seconds(1));
  while (absl::Nanoseconds(completions_->LongestRunNs()) <= limit) {
    absl::MutexLock lock(&mu_);
    if (mu_.AwaitWithTimeout(absl::Condition(&stop_), interval)) return;
  }
  on_overrun_(absl::StrCat(
      "a kernel ran longer than the daemon allows (kernel_time_ms = ", limit_ms_, ")"));
}

}  // namespace sluice::worker
