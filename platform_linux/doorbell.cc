// SPDX-License-Identifier: Apache-2.0
#include "broker/os/doorbell.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

namespace sluice::os {
namespace {

constexpr int64_t kNanosPerSecond = 1'000'000'000;

// FUTEX_WAIT_BITSET takes an absolute time, so that a signal does not lengthen the wait.
timespec DeadlineAfter(int64_t timeout_ns) {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  const int64_t nanos = now.tv_nsec + timeout_ns % kNanosPerSecond;
  timespec deadline;
  deadline.tv_sec = now.tv_sec + static_cast<time_t>(timeout_ns / kNanosPerSecond) +
                    static_cast<time_t>(nanos / kNanosPerSecond);
  deadline.tv_nsec = static_cast<decltype(deadline.tv_nsec)>(nanos % kNanosPerSecond);
  return deadline;
}

}  // namespace

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));
static_assert(std::atomic<uint32_t>::is_always_lock_free);

bool FutexWait(std::atomic<uint32_t>* word, uint32_t expected, uint32_t bitset,
               int64_t timeout_ns) {
  timespec deadline;
  if (timeout_ns >= 0) deadline = DeadlineAfter(timeout_ns);
  // Not FUTEX_PRIVATE_FLAG: the word is shared between processes.
  const long result = ::syscall(SYS_futex, reinterpret_cast<uint32_t*>(word), FUTEX_WAIT_BITSET,
                                expected, timeout_ns >= 0 ? &deadline : nullptr, nullptr, bitset);
  // EAGAIN: the word differed. EINTR: a signal, which counts as a wake without cause.
  return result == 0 || errno != ETIMEDOUT;
}

int FutexWake(std::atomic<uint32_t>* word, int count, uint32_t bitset) {
  const long woken = ::syscall(SYS_futex, reinterpret_cast<uint32_t*>(word), FUTEX_WAKE_BITSET,
                               count, nullptr, nullptr, bitset);
  return woken < 0 ? 0 : static_cast<int>(woken);
}

}  // namespace sluice::os
