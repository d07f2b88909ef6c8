// SPDX-License-Identifier: Apache-2.0
#include "client_icd/sharing/core/exit_gate.h"

#include <cstdlib>
#include <utility>

#include "broker/os/threads.h"
#include "client_icd/base/per_process.h"

namespace sluice::client::sharing {
namespace {

// A job may wait for the device for longer.
constexpr absl::Duration kExitTimeout = absl::Seconds(2);

}  // namespace

ExitGate& ExitGate::OfProcess() {
  static PerProcess<ExitGate> gates;
  return gates.Get();
}

void ExitGate::CloseAtExit() {
  static const int registered = std::atexit([] { OfProcess().Close(kExitTimeout); });
  static_cast<void>(registered);
}

bool ExitGate::Enter() {
  if (os::OtherThreadsWereEnded()) return false;
  absl::MutexLock lock(&mu_);
  if (closed_) return false;
  ++inside_;
  return true;
}

void ExitGate::Leave() {
  absl::MutexLock lock(&mu_);
  --inside_;
}

bool ExitGate::closed() {
  absl::MutexLock lock(&mu_);
  return closed_;
}

bool ExitGate::given_up() {
  absl::MutexLock lock(&mu_);
  return given_up_;
}

void ExitGate::AddLast(const void* key, std::function<void()> last) {
  absl::MutexLock lock(&mu_);
  last_[key] = std::move(last);
}

void ExitGate::RemoveLast(const void* key) {
  if (os::OtherThreadsWereEnded()) return;
  absl::MutexLock lock(&mu_);
  last_.erase(key);
}

bool ExitGate::Close(absl::Duration timeout) {
  if (os::OtherThreadsWereEnded()) return false;
  std::map<const void*, std::function<void()>> last;
  {
    absl::MutexLock lock(&mu_);
    last.swap(last_);
  }
  for (const auto& [key, call] : last) call();
  absl::MutexLock lock(&mu_);
  closed_ = true;
  const auto is_empty = [](ExitGate* gate)
                            ABSL_EXCLUSIVE_LOCKS_REQUIRED(gate->mu_) { return gate->inside_ == 0; };
  given_up_ = !mu_.AwaitWithTimeout(absl::Condition(+is_empty, this), timeout);
  return !given_up_;
}

}  // namespace sluice::client::sharing
