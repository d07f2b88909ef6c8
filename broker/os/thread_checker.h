// SPDX-License-Identifier: Apache-2.0
// Checks a header's promise that something is used on one thread only ("Loop thread only."). The
// owner has a checker; a function that may run on that thread only calls Assert() first. Data that
// is ABSL_GUARDED_BY the checker can be reached in functions that have called Assert() and nowhere
// else: clang's -Wthread-safety finds it when it compiles, as it finds a lock that is missing.
//
// The thread is the first that asserts, or that of the last Attach. Debug builds and those with a
// sanitizer (SLUICE_CHECK_THREADS) end with a message on any other thread; else nothing is checked
// and nothing is kept.
//
// Thread-safe.
#pragma once

#include "absl/base/thread_annotations.h"

#if !defined(NDEBUG) || defined(SLUICE_CHECK_THREADS)
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>
#endif

namespace sluice::os {

class ABSL_LOCKABLE ThreadChecker {
 public:
  ThreadChecker() = default;
  ThreadChecker(const ThreadChecker&) = delete;
  ThreadChecker& operator=(const ThreadChecker&) = delete;

#if !defined(NDEBUG) || defined(SLUICE_CHECK_THREADS)
  // From now on it is the calling thread. Nobody may use the guarded data meanwhile.
  void Attach() const ABSL_ASSERT_EXCLUSIVE_LOCK() { owner_.store(std::this_thread::get_id()); }
  void Assert() const ABSL_ASSERT_EXCLUSIVE_LOCK() {
    std::thread::id none;
    const std::thread::id here = std::this_thread::get_id();
    if (owner_.compare_exchange_strong(none, here) || none == here) return;
    std::fputs("a function of one thread was called on another\n", stderr);
    std::abort();
  }

 private:
  mutable std::atomic<std::thread::id> owner_{};
#else
  void Attach() const ABSL_ASSERT_EXCLUSIVE_LOCK() {}
  void Assert() const ABSL_ASSERT_EXCLUSIVE_LOCK() {}
#endif
};

}  // namespace sluice::os
