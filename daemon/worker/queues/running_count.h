// SPDX-License-Identifier: Apache-2.0
// How many commands of the session can run and have not ended, in the page of turns
// (proto/turn_page.h). While there are orders it also measures how long the device takes for one: the
// time in which some were under way, over those that have ended in it. Without orders nothing is
// measured.
//
// Begin and End: one thread at a time (Completions has its mutex locked), unless it is shared by the
// sessions of a pool. The rest: any thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "absl/synchronization/mutex.h"
#include "proto/turn_page.h"

namespace sluice::worker {

class RunningCount {
 public:
  RunningCount(const wire::TurnOrders* orders, std::atomic<uint32_t>* word)
      : orders_(orders), word_(word) {}
  // Several sessions count in it.
  void Share() { shared_ = true; }
  // Before the session's first command.
  void Attach(const wire::TurnOrders* orders, std::atomic<uint32_t>* word) {
    orders_ = orders;
    word_ = word;
  }

  void Begin() {
    if (!shared_) return BeginOne();
    absl::MutexLock lock(&mu_);
    BeginOne();
  }
  void End() {
    if (!shared_) return EndOne();
    absl::MutexLock lock(&mu_);
    EndOne();
  }

  uint32_t count() const { return word_->load(std::memory_order_relaxed); }
  int64_t command_ns() const {  // 0: not known yet.
    return command_ns_.load(std::memory_order_relaxed);
  }
  int64_t last_end_ns() const { return last_end_ns_.load(std::memory_order_relaxed); }

  // Sleeps until one of `count` has ended, and not longer than that.
  void AwaitEnd(uint32_t count, int64_t timeout_ns);

 private:
  bool IsMeasured() const {
    return orders_->order.load(std::memory_order_relaxed) >
           static_cast<uint32_t>(wire::TurnOrder::kGo);
  }
  void BeginOne();
  void EndOne();

  const wire::TurnOrders* orders_;
  std::atomic<uint32_t>* word_;
  bool shared_ = false;
  absl::Mutex mu_;        // Taken only where it is shared.
  uint32_t count_ = 0;    // As the page's.
  int64_t since_ns_ = 0;  // From then on it is not yet in busy_ns_; 0: nothing to measure.
  int64_t busy_ns_ = 0;
  int64_t ended_ = 0;
  std::atomic<int64_t> command_ns_ = 0;
  std::atomic<int64_t> last_end_ns_ = 0;
  std::atomic<int> awaited_ = 0;  // By so many.
};

}  // namespace sluice::worker
