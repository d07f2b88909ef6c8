// SPDX-License-Identifier: Apache-2.0
//
// Bounds the life of every test: a hang is a failure with a name, not a stuck run. A thread holds
// the deadline of the running test and ends the process when it passes. Owner: main.cc hands it
// to GoogleTest's listeners. Thread: GoogleTest's for the events, its own for the deadline. Trust:
// none needed.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace sluice::conformance {

class Watchdog : public testing::EmptyTestEventListener {
 public:
  explicit Watchdog(std::chrono::seconds limit);  // One per process.
  ~Watchdog() override;

  void OnTestStart(const testing::TestInfo& info) override;
  void OnTestEnd(const testing::TestInfo& info) override;

  // The running test may take so many times the limit, from now on: it moves gigabytes, which a
  // busy machine takes its time for.
  static void Allow(int limits);

 private:
  void Run();

  void SetDeadline(int limits);  // Under mutex_.

  // The part of its time that the running test has had. A second in which programs waited for a processor
  // counts a quarter, as in tests/limit.py: a busy machine is no hang.
  std::chrono::duration<double> Passed() const;

  const std::chrono::seconds limit_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string test_;  // Guarded by mutex_, as those below; empty between tests.
  std::chrono::seconds allowed_{0};
  std::chrono::steady_clock::time_point began_;
  std::chrono::duration<double> waited_{0};  // For processors, by all programs, before that.
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace sluice::conformance
