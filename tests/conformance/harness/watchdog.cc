// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/harness/watchdog.h"

#include <cstdio>

#include "tests/conformance/harness/child_process.h"

namespace sluice::conformance {

namespace {

Watchdog* the_watchdog = nullptr;  // Null in a child's scene, which has none.

}  // namespace

Watchdog::Watchdog(std::chrono::seconds limit) : limit_(limit), thread_([this] { Run(); }) {
  the_watchdog = this;
}

Watchdog::~Watchdog() {
  the_watchdog = nullptr;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Watchdog::OnTestStart(const testing::TestInfo& info) {
  std::lock_guard<std::mutex> lock(mutex_);
  test_ = std::string(info.test_suite_name()) + "." + info.name();
  SetDeadline(1);
}

void Watchdog::Allow(int limits) {
  if (the_watchdog == nullptr) return;
  std::lock_guard<std::mutex> lock(the_watchdog->mutex_);
  the_watchdog->SetDeadline(limits);
}

void Watchdog::SetDeadline(int limits) {
  allowed_ = limits * limit_;
  deadline_ = std::chrono::steady_clock::now() + allowed_;
  changed_.notify_all();
}

void Watchdog::OnTestEnd(const testing::TestInfo&) {
  std::lock_guard<std::mutex> lock(mutex_);
  test_.clear();
  changed_.notify_all();
}

void Watchdog::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stop_) {
    if (test_.empty()) {
      changed_.wait(lock);
      continue;
    }
    const auto deadline = deadline_;
    if (changed_.wait_until(lock, deadline) == std::cv_status::no_timeout) continue;
    if (test_.empty() || std::chrono::steady_clock::now() < deadline_) continue;
    std::fflush(stdout);
    std::fprintf(stderr, "watchdog: %s did not end within %lld s; ending the process\n",
                 test_.c_str(), static_cast<long long>(allowed_.count()));
    std::fflush(stderr);
    EndThisProcess();
  }
}

}  // namespace sluice::conformance
