// SPDX-License-Identifier: Apache-2.0
// Looking again for a moment before sleeping: a wake-up through the kernel costs a few
// microseconds, an answer is often there sooner. The budget adapts: it grows while looking pays and
// shrinks to nothing while it does not, as on a machine whose cores are all busy, where spinning
// would take the time of the very thread it waits for. Thread-compatible: one budget per waiting
// place.
#pragma once

#include <sched.h>
#include <time.h>

#include <cstdint>

namespace sluice {

inline constexpr int kMaxSpinMicroseconds = 20;

inline int64_t MonotonicNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000000000 + now.tv_nsec;
}

inline bool MaySpin() {
  static const bool several_cpus = [] {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) > 1;
  }();
  return several_cpus;
}

// True as soon as `there()` is; false once the budget is used up. `*budget` is in units of 1/16 of
// the longest spin, and is the caller's to keep between calls, from 0.
template <typename There>
bool SpinUntil(There&& there, int* budget) {
  if (there()) return true;
  // From time to time a short look even without budget, to notice that it pays again.
  if (!MaySpin()) return false;
  if (*budget < 1) {
    if (--*budget > -16) return false;
    *budget = 1;
  }
  const int64_t end = MonotonicNs() + int64_t{kMaxSpinMicroseconds} * 1000 * *budget / 16;
  do {
    for (int i = 0; i < 16; ++i) {
      if (there()) {
        if (*budget < 16) ++*budget;
        return true;
      }
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
  } while (MonotonicNs() < end);
  *budget -= *budget > 4 ? *budget / 4 : 1;
  return false;
}

}  // namespace sluice
