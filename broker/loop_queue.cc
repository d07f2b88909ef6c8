// SPDX-License-Identifier: Apache-2.0
#include "broker/loop_queue.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace sluice {

bool LoopQueue::Post(uint64_t connection, std::function<void()> task) {
  absl::MutexLock lock(&mutex_);
  if (closed_) return false;
  tasks_.Push(absl::StrCat(connection), std::move(task));
  if (!std::exchange(posted_, true)) loop_->Post([this] { RunSome(); });
  return true;
}

void LoopQueue::CloseAndRun() {
  {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
  }
  while (const std::function<void()> task = Next()) task();
}

std::function<void()> LoopQueue::Next() {
  absl::MutexLock lock(&mutex_);
  return tasks_.empty() ? nullptr : tasks_.Pop();
}

void LoopQueue::RunSome() {
  const int64_t end_ms = MonotonicMs() + kMostMsAtOnce;
  while (const std::function<void()> task = Next()) {
    task();
    if (MonotonicMs() >= end_ms) break;
  }
  absl::MutexLock lock(&mutex_);
  posted_ = !tasks_.empty();
  if (posted_) loop_->Post([this] { RunSome(); });
}

}  // namespace sluice
