// SPDX-License-Identifier: Apache-2.0
// Looking again for a moment before going to sleep: a sleep and a wake-up cost a few microseconds
// on each side, an answer is often there sooner. How long adapts: it grows while looking pays and
// shrinks to nothing while it does not. And looking stops at once, for a good while, when it has
// cost the thread its processor. Then no core is idle, and spinning takes the time of the very
// thread it waits for, or is paid for with a whole time slice later. On one processor each look
// gives the processor away, so that whoever is to bring the answer can run.
//
// Owned by whoever waits; one for each waiting place. Thread-safe: racing updates do no harm.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "broker/os/threads.h"

namespace sluice::wire {

inline int64_t MonotonicNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

inline bool HasOneProcessor() {
  static const bool one = os::UsableProcessors() == 1;
  return one;
}

// Between two looks.
inline void PauseBetweenLooks() {
  if (HasOneProcessor()) return os::LetOthersRun();
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Looks between two readings of the clock.
inline int LooksAtOnce() { return HasOneProcessor() ? 1 : 16; }

class AdaptiveSpin {
 public:
  // Spinning pays when what is awaited comes sooner than a wake-up takes, which is not the same
  // everywhere: a virtual processor that idles may take 50 us. These are for a quick one; each
  // wake-up that NoteCame measures counts.
  static constexpr int32_t kMostNs = 20'000;
  static constexpr int32_t kFirstNs = 4'000;
  // The same of a patient one.
  static constexpr int32_t kPatientMostNs = 700'000;
  static constexpr int32_t kPatientFirstNs = 50'000;
  // Once spinning has stopped, it is tried again after this many waits, to notice that it pays
  // again;
  static constexpr int32_t kWaitsBetweenTries = 32;
  // and after this many if it has cost the processor, as which counts a gap of
  static constexpr int32_t kWaitsAfterLoss = 128;
  static constexpr int64_t kLossNs = 100'000;
  static constexpr int64_t kMostWakeUpNs = 100'000;

  // For answers of a device beside the processor, which take some tens of microseconds even if
  // there is little to do: its own driver would spin in the application's thread all the while.
  void BePatient() { patient_.store(true, std::memory_order_relaxed); }
  bool patient() const { return patient_.load(std::memory_order_relaxed); }

  // True as soon as `there()` is; false once it is better to sleep.
  template <typename There>
  bool Until(There&& there) {
    if (there()) return true;
    const bool patient = patient_.load(std::memory_order_relaxed);
    // At first also the other side's wake-up is to be awaited, and what it does then.
    const int32_t wake_up = wake_up_ns_.load(std::memory_order_relaxed);
    const int32_t first = patient ? kPatientFirstNs : std::max(kFirstNs, wake_up + wake_up / 2);
    const int32_t most = patient ? kPatientMostNs : std::max(kMostNs, 2 * wake_up);
    int32_t budget = budget_ns_.load(std::memory_order_relaxed);
    if (budget == 0) {
      if (waits_left_.fetch_sub(1, std::memory_order_relaxed) > 0) return false;
      budget = first;
    }
    const int64_t start = MonotonicNs();
    started_ns_.store(start, std::memory_order_relaxed);
    int64_t now = start;
    do {
      for (int i = 0; i < LooksAtOnce(); ++i) {
        if (there()) {
          budget_ns_.store(std::min(most, budget + budget / 4), std::memory_order_relaxed);
          return true;
        }
        PauseBetweenLooks();
      }
      const int64_t before = now;
      now = MonotonicNs();
      if (now - before > kLossNs) {
        Stop(kWaitsAfterLoss);
        started_ns_.store(0, std::memory_order_relaxed);  // Nothing is to be learned from this one.
        return there();
      }
    } while (now < start + budget);
    if (budget / 2 < first / 8) {
      Stop(kWaitsBetweenTries);
    } else {
      budget_ns_.store(budget / 2, std::memory_order_relaxed);
    }
    return false;
  }

  // Looks for so long, whatever paid lately: what is awaited is expected.
  template <typename There>
  static bool For(int64_t ns, There&& there) {
    const int64_t end = MonotonicNs() + ns;
    for (int64_t now = end - ns, before = now; now < end && now - before <= kLossNs;) {
      for (int i = 0; i < LooksAtOnce(); ++i) {
        if (there()) return true;
        PauseBetweenLooks();
      }
      before = now;
      now = MonotonicNs();
    }
    return there();
  }

  // The thing that Until gave up on is there now; its bringer says that it rang then, if it is
  // known. A patient one looks that long the next time, if it is not too long.
  void NoteCame(int64_t rung_ns_untrusted = 0) {
    const int64_t now = MonotonicNs();
    // One that took longer waited for a processor, not for its wake-up.
    if (rung_ns_untrusted < now && rung_ns_untrusted > now - kMostWakeUpNs) {
      const int32_t before = wake_up_ns_.load(std::memory_order_relaxed);
      const auto wake_up = static_cast<int32_t>(now - rung_ns_untrusted);
      wake_up_ns_.store(before == 0 ? wake_up : before + (wake_up - before) / 8,
                        std::memory_order_relaxed);
    }
    if (!patient_.load(std::memory_order_relaxed)) return;
    const int64_t took = now - started_ns_.load(std::memory_order_relaxed);
    if (took > kPatientMostNs) return;
    const auto budget = static_cast<int32_t>(took + took / 4);
    budget_ns_.store(std::min(kPatientMostNs, budget), std::memory_order_relaxed);
  }

  int32_t budget_ns() const { return budget_ns_.load(std::memory_order_relaxed); }

 private:
  void Stop(int32_t waits) {
    budget_ns_.store(0, std::memory_order_relaxed);
    waits_left_.store(waits, std::memory_order_relaxed);
  }

  std::atomic<bool> patient_{false};
  std::atomic<int64_t> started_ns_{0};  // The last spin.
  std::atomic<int32_t> wake_up_ns_{0};
  std::atomic<int32_t> budget_ns_{0};
  std::atomic<int32_t> waits_left_{0};  // Without spinning, while the budget is 0.
};

}  // namespace sluice::wire
