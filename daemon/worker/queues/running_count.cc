// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/queues/running_count.h"

#include <climits>

#include "broker/os/doorbell.h"
#include "proto/spin.h"

namespace sluice::worker {
namespace {

// With more than these, the past counts for half.
constexpr int64_t kMostBusyNs = 50'000'000;
constexpr int64_t kMostEnded = 512;

}  // namespace

void RunningCount::BeginOne() {
  if (!IsMeasured()) {
    since_ns_ = 0;
  } else if (count_ == 0) {
    since_ns_ = wire::MonotonicNs();
  }
  word_->store(++count_, std::memory_order_relaxed);
}

void RunningCount::EndOne() {
  word_->store(--count_, std::memory_order_seq_cst);
  if (IsMeasured()) {
    const int64_t now = wire::MonotonicNs();
    last_end_ns_.store(now, std::memory_order_relaxed);
    if (since_ns_ != 0) {
      busy_ns_ += now - since_ns_;
      command_ns_.store(busy_ns_ / ++ended_, std::memory_order_relaxed);
      if (ended_ > 1 && (busy_ns_ > kMostBusyNs || ended_ > kMostEnded)) {
        busy_ns_ /= 2;
        ended_ /= 2;
      }
    }
    since_ns_ = count_ == 0 ? 0 : now;
  }
  // The session thread says that it waits before it looks at the count.
  if (awaited_.load(std::memory_order_seq_cst) != 0)
    os::FutexWake(word_, shared_ ? INT_MAX : 1, ~0U);
}

void RunningCount::AwaitEnd(uint32_t count, int64_t timeout_ns) {
  awaited_.fetch_add(1, std::memory_order_seq_cst);
  if (word_->load(std::memory_order_seq_cst) == count) os::FutexWait(word_, count, ~0U, timeout_ns);
  awaited_.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace sluice::worker
