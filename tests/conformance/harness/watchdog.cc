// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/harness/watchdog.h"

#include <algorithm>
#include <cstdio>

#include "tests/conformance/harness/child_process.h"

namespace sluice::conformance {

namespace {

using Seconds = std::chrono::duration<double>;

// Under Wine the host's, by the name that it has there.
constexpr const char* kPressure[] = {"/proc/pressure/cpu", "Z:/proc/pressure/cpu"};

Watchdog* the_watchdog = nullptr;  // Null in a child's scene, which has none.

// The time in which some program waited for a processor, since the machine was started; 0 where the
// system does not say.
Seconds WaitedForProcessor() {
  unsigned long long microseconds = 0;
  FILE* file = nullptr;
  for (const char* name : kPressure)
    if (file == nullptr) file = std::fopen(name, "r");
  if (file == nullptr) return Seconds(0);
  if (std::fscanf(file, "some avg10=%*f avg60=%*f avg300=%*f total=%llu", &microseconds) != 1)
    microseconds = 0;
  std::fclose(file);
  return Seconds(static_cast<double>(microseconds) / 1e6);
}

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
  began_ = std::chrono::steady_clock::now();
  waited_ = WaitedForProcessor();
  changed_.notify_all();
}

Seconds Watchdog::Passed() const {
  constexpr double kSaved = 0.75;
  const Seconds wall = std::chrono::steady_clock::now() - began_;
  return wall - kSaved * std::clamp(WaitedForProcessor() - waited_, Seconds(0), wall);
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
    if (const Seconds left = allowed_ - Passed(); left > Seconds(0)) {
      changed_.wait_for(lock, left);
      continue;
    }
    std::fflush(stdout);
    std::fprintf(stderr, "watchdog: %s did not end within %lld s; ending the process\n",
                 test_.c_str(), static_cast<long long>(allowed_.count()));
    std::fflush(stderr);
    EndThisProcess();
  }
}

}  // namespace sluice::conformance
