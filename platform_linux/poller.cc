// SPDX-License-Identifier: Apache-2.0
#include "broker/os/poller.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "broker/base/check.h"
#include "broker/os/scoped_handle.h"
#include "platform_linux/errno_status.h"

namespace sluice::os {
namespace {

constexpr int kEventsPerWait = 64;
constexpr uint64_t kWakeKey = 0;

class EpollPoller final : public Poller {
 public:
  EpollPoller(UniqueFd epoll, UniqueFd wake) : epoll_(std::move(epoll)), wake_(std::move(wake)) {}

  absl::Status Add(uint64_t key, int fd, Interest interest) override {
    epoll_event event = {};
    event.events = interest == Interest::kReadable ? EPOLLIN : EPOLLRDHUP;
    event.data.u64 = key;  // Not a pointer: an event may be stale by the time it is handled.
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0) return absl::OkStatus();
    return ErrnoStatus(errno, "epoll_ctl");
  }

  void Remove(uint64_t, int fd) override { ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr); }

  void Wait(int timeout_ms, std::vector<uint64_t>* ready) override {
    ready->clear();
    epoll_event events[kEventsPerWait];
    const int count = ::epoll_wait(epoll_.get(), events, kEventsPerWait, timeout_ms);
    SLUICE_CHECK(count >= 0 || errno == EINTR);
    for (int i = 0; i < count; ++i) {
      if (events[i].data.u64 != kWakeKey) {
        ready->push_back(uint64_t{events[i].data.u64});  // A copy: the struct is packed.
        continue;
      }
      uint64_t wakes;
      [[maybe_unused]] const ssize_t bytes = ::read(wake_.get(), &wakes, sizeof(wakes));
    }
  }

  void Wake() override {
    const uint64_t one = 1;
    // Fails only if the counter is full, and then the loop is about to wake anyway.
    [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof(one));
  }

 private:
  const UniqueFd epoll_;
  const UniqueFd wake_;  // An eventfd, watched under kWakeKey.
};

}  // namespace

absl::StatusOr<std::unique_ptr<Poller>> Poller::Create() {
  UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return ErrnoStatus(errno, "epoll_create1");
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return ErrnoStatus(errno, "eventfd");
  const int wake_fd = wake.get();
  auto poller = std::make_unique<EpollPoller>(std::move(epoll), std::move(wake));
  if (absl::Status added = poller->Add(kWakeKey, wake_fd, Interest::kReadable); !added.ok()) {
    return added;
  }
  return std::unique_ptr<Poller>(std::move(poller));
}

}  // namespace sluice::os
