// SPDX-License-Identifier: Apache-2.0
#include "broker/event_loop.h"

#include <algorithm>
#include <chrono>
#include <climits>
#include <string>
#include <utility>

#include "broker/base/log.h"

namespace sluice::broker {

int64_t MonotonicMs() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

absl::StatusOr<std::unique_ptr<EventLoop>> EventLoop::Create() {
  absl::StatusOr<std::unique_ptr<os::Poller>> poller = os::Poller::Create();
  if (!poller.ok()) return poller.status();
  return std::unique_ptr<EventLoop>(new EventLoop(*std::move(poller)));
}

EventLoop::WatchId EventLoop::Watch(int fd, Task on_readable) {
  return WatchFor(os::Poller::Interest::kReadable, fd, std::move(on_readable));
}

EventLoop::WatchId EventLoop::WatchHangUp(int fd, Task on_hang_up) {
  return WatchFor(os::Poller::Interest::kHangUp, fd, std::move(on_hang_up));
}

EventLoop::WatchId EventLoop::WatchFor(os::Poller::Interest interest, int fd, Task task) {
  thread_.Assert();
  const WatchId id = next_id_++;
  if (absl::Status added = poller_->Add(id, fd, interest); !added.ok()) {
    Log(LogLevel::kError, "broker", "cannot watch a descriptor",
        {{"reason", std::string(added.message())}});
    return 0;
  }
  watches_[id] = {fd, std::make_shared<Task>(std::move(task))};
  return id;
}

void EventLoop::Unwatch(WatchId* id) {
  thread_.Assert();
  const auto found = watches_.find(std::exchange(*id, 0));
  if (found == watches_.end()) return;
  poller_->Remove(found->first, found->second.fd);
  watches_.erase(found);
}

EventLoop::TimerId EventLoop::AddTimer(int64_t delay_ms, Task task) {
  thread_.Assert();
  const TimerId id = next_id_++;
  const int64_t due_ms = MonotonicMs() + std::max<int64_t>(delay_ms, 0);
  timers_[{due_ms, id}] = std::move(task);
  timer_due_ms_[id] = due_ms;
  return id;
}

void EventLoop::CancelTimer(TimerId* id) {
  thread_.Assert();
  const auto found = timer_due_ms_.find(std::exchange(*id, 0));
  if (found == timer_due_ms_.end()) return;
  timers_.erase({found->second, found->first});
  timer_due_ms_.erase(found);
}

void EventLoop::Post(Task task) {
  {
    absl::MutexLock lock(&mutex_);
    posted_.push_back(std::move(task));
  }
  poller_->Wake();
}

void EventLoop::Quit() {
  Post([this] {
    thread_.Assert();
    quit_ = true;
  });
}

int EventLoop::MillisecondsToNextTimer() const {
  if (timers_.empty()) return -1;
  const int64_t left_ms = timers_.begin()->first.first - MonotonicMs();
  return static_cast<int>(std::clamp<int64_t>(left_ms, 0, INT_MAX));
}

void EventLoop::RunDueTimers() {
  const int64_t now_ms = MonotonicMs();
  while (!timers_.empty() && timers_.begin()->first.first <= now_ms) {
    auto first = timers_.extract(timers_.begin());
    timer_due_ms_.erase(first.key().second);
    first.mapped()();
  }
}

void EventLoop::RunPosted() {
  std::vector<Task> tasks;
  {
    absl::MutexLock lock(&mutex_);
    tasks.swap(posted_);
  }
  for (const Task& task : tasks) task();
}

void EventLoop::Run() {
  thread_.Attach();
  std::vector<uint64_t> ready;
  while (!quit_) {
    poller_->Wait(MillisecondsToNextTimer(), &ready);
    RunPosted();
    for (const WatchId id : ready) {
      const auto found = watches_.find(id);
      if (found == watches_.end()) continue;  // Removed by an earlier event of this round.
      const std::shared_ptr<Task> on_readable = found->second.on_readable;
      (*on_readable)();
    }
    RunDueTimers();
  }
  quit_ = false;
}

}  // namespace sluice::broker
