// SPDX-License-Identifier: Apache-2.0
#include "broker/loop_calls.h"

#include <memory>
#include <utility>

namespace sluice::broker {

absl::Status LoopCalls::Run(std::function<void()> task) {
  // Shared: this thread may give up before the loop comes to the task.
  struct Call {
    std::function<void()> task;
    bool done = false;
    bool abandoned = false;
  };
  auto call = std::make_shared<Call>();
  call->task = std::move(task);
  loop_->Post([this, call] {
    absl::MutexLock lock(&mutex_);
    if (call->abandoned) return;
    call->task();  // Under the lock: the caller's variables live until it has seen `done`.
    call->done = true;
  });
  absl::MutexLock lock(&mutex_);
  const auto finished = [this, &call]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return call->done || stopped_;
  };
  mutex_.Await(absl::Condition(&finished));
  call->abandoned = !call->done;
  return call->done ? absl::OkStatus() : absl::CancelledError("the daemon is stopping");
}

void LoopCalls::Stop() {
  absl::MutexLock lock(&mutex_);
  stopped_ = true;
}

}  // namespace sluice::broker
