// SPDX-License-Identifier: Apache-2.0
#include "broker/event_loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

#include "broker/base/check.h"
#include "broker/base/log.h"

namespace sluice {
namespace {

constexpr int kEventsPerWait = 64;
constexpr EventLoop::WatchId kWakeId = 0;

}  // namespace

int64_t MonotonicMs() {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1'000'000;
}

absl::StatusOr<std::unique_ptr<EventLoop>> EventLoop::Create() {
  UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return absl::ErrnoToStatus(errno, "epoll_create1");
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return absl::ErrnoToStatus(errno, "eventfd");
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.u64 = kWakeId;
  if (::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, wake.get(), &event) != 0) {
    return absl::ErrnoToStatus(errno, "epoll_ctl");
  }
  return std::unique_ptr<EventLoop>(new EventLoop(std::move(epoll), std::move(wake)));
}

EventLoop::WatchId EventLoop::Watch(int fd, Task on_readable) {
  return WatchFor(EPOLLIN, fd, std::move(on_readable));
}

EventLoop::WatchId EventLoop::WatchHangUp(int fd, Task on_hang_up) {
  return WatchFor(EPOLLRDHUP, fd, std::move(on_hang_up));
}

EventLoop::WatchId EventLoop::WatchFor(uint32_t epoll_events, int fd, Task task) {
  const WatchId id = next_id_++;
  epoll_event event = {};
  event.events = epoll_events;
  event.data.u64 = id;  // An id, not a pointer: an event may be stale by the time it is handled.
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    Log(LogLevel::kError, "broker", "cannot watch a descriptor",
        {{"reason", std::strerror(errno)}});
    return 0;
  }
  watches_[id] = {fd, std::make_shared<Task>(std::move(task))};
  return id;
}

void EventLoop::Unwatch(WatchId* id) {
  const auto found = watches_.find(std::exchange(*id, 0));
  if (found == watches_.end()) return;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, found->second.fd, nullptr);
  watches_.erase(found);
}

EventLoop::TimerId EventLoop::AddTimer(int64_t delay_ms, Task task) {
  const TimerId id = next_id_++;
  const int64_t due_ms = MonotonicMs() + std::max<int64_t>(delay_ms, 0);
  timers_[{due_ms, id}] = std::move(task);
  timer_due_ms_[id] = due_ms;
  return id;
}

void EventLoop::CancelTimer(TimerId* id) {
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
  const uint64_t one = 1;
  // Fails only if the counter is full, and then the loop is about to wake anyway.
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof(one));
}

void EventLoop::Quit() {
  Post([this] { quit_ = true; });
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
  uint64_t count;
  [[maybe_unused]] const ssize_t bytes = ::read(wake_.get(), &count, sizeof(count));
  std::vector<Task> tasks;
  {
    absl::MutexLock lock(&mutex_);
    tasks.swap(posted_);
  }
  for (const Task& task : tasks) task();
}

void EventLoop::Run() {
  epoll_event events[kEventsPerWait];
  while (!quit_) {
    const int count = ::epoll_wait(epoll_.get(), events, kEventsPerWait, MillisecondsToNextTimer());
    SLUICE_CHECK(count >= 0 || errno == EINTR);
    for (int i = 0; i < count; ++i) {
      const WatchId id = events[i].data.u64;
      if (id == kWakeId) {
        RunPosted();
        continue;
      }
      const auto found = watches_.find(id);
      if (found == watches_.end()) continue;  // Removed by an earlier event of this round.
      const std::shared_ptr<Task> on_readable = found->second.on_readable;
      (*on_readable)();
    }
    RunDueTimers();
  }
  quit_ = false;
}

}  // namespace sluice
