// SPDX-License-Identifier: Apache-2.0
#include "broker/loop_queue.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace sluice::broker {

LoopQueue::Posted LoopQueue::PostCall(uint64_t connection, std::function<void()> task) {
  absl::MutexLock lock(&mutex_);
  if (closed_) return Posted::kClosed;
  const auto found = calls_of_.find(connection);
  const size_t own = found == calls_of_.end() ? 0 : found->second;
  if (own >= kMostOfOne || (own >= kAlwaysRoom && shared_ >= kMostShared)) return Posted::kNoRoom;
  calls_of_[connection] = own + 1;
  if (own >= kAlwaysRoom) ++shared_;
  PushLocked({std::move(task), connection, true});
  return Posted::kYes;
}

bool LoopQueue::Post(uint64_t connection, std::function<void()> task) {
  absl::MutexLock lock(&mutex_);
  if (closed_) return false;
  PushLocked({std::move(task), connection, false});
  return true;
}

void LoopQueue::PushLocked(Task task) {
  tasks_.Push(absl::StrCat(task.connection), std::move(task));
  if (!std::exchange(posted_, true)) loop_->Post([this] { RunSome(); });
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
  if (tasks_.empty()) return nullptr;
  Task task = tasks_.Pop();
  if (task.is_call) {
    const auto own = calls_of_.find(task.connection);
    if (own->second > kAlwaysRoom) --shared_;
    if (--own->second == 0) calls_of_.erase(own);
  }
  return std::move(task.run);
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

}  // namespace sluice::broker
