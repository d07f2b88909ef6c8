// SPDX-License-Identifier: Apache-2.0
#include "platform_linux/gateway/front_thread.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "absl/strings/str_cat.h"
#include "broker/base/log.h"
#include "broker/os/threads.h"
#include "platform_linux/errno_status.h"
#include "proto/status_macros.h"

namespace sluice::gateway {
namespace {

constexpr int kEventsPerTurn = 64;
// Many: connections that wait to be accepted keep others out of the queue, and most of a crowd
// leave at once.
constexpr int kAcceptsPerTurn = 512;
constexpr int64_t kNoDescriptorsMs = 100;
constexpr int kDoorNice = 5;

// "192.0.2.7", "[2001:db8::1]", "[fe80::1%2]"; IPv4 that came by an IPv6 socket is IPv4.
std::string AddressText(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET) {
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(address).sin_addr, text,
                sizeof(text));
    return text;
  }
  const auto& six = reinterpret_cast<const sockaddr_in6&>(address);
  if (IN6_IS_ADDR_V4MAPPED(&six.sin6_addr)) {
    ::inet_ntop(AF_INET, &six.sin6_addr.s6_addr[12], text, sizeof(text));
    return text;
  }
  ::inet_ntop(AF_INET6, &six.sin6_addr, text, sizeof(text));
  if (six.sin6_scope_id == 0) return absl::StrCat("[", text, "]");
  return absl::StrCat("[", text, "%", six.sin6_scope_id, "]");
}

bool LacksDescriptors(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

}  // namespace

absl::StatusOr<FrontThread*> FrontThread::Create(FrontState* front) {
  os::UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  os::UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!epoll.valid() || !wake.valid()) return os::ErrnoStatus(errno, "epoll_create1");
  epoll_event event = {.events = EPOLLIN, .data = {.ptr = nullptr}};
  if (::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, wake.get(), &event) != 0)
    return os::ErrnoStatus(errno, "epoll_ctl");
  return new FrontThread(front, std::move(epoll), std::move(wake));
}

absl::StatusOr<FrontThread*> FrontThread::StartInside(FrontState* front) {
  ASSIGN_OR_RETURN(FrontThread* const thread, Create(front));
  os::StartDetached([thread] { thread->Run(); });
  return thread;
}

absl::StatusOr<FrontThread*> FrontThread::StartAtDoor(FrontState* front,
                                                      const std::vector<int>& listeners,
                                                      std::vector<FrontThread*> inside) {
  ASSIGN_OR_RETURN(FrontThread* const thread, Create(front));
  thread->inside_ = std::move(inside);
  for (const int fd : listeners) thread->listeners_.emplace_back().fd = fd;
  if (!thread->Listen(true)) return os::ErrnoStatus(errno, "epoll_ctl");
  os::StartDetached([thread] {
    ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kDoorNice);
    thread->Run();
  });
  return thread;
}

bool FrontThread::Listen(bool on) {
  bool good = true;
  for (Listener& listener : listeners_) {
    epoll_event event = {.events = EPOLLIN | EPOLLEXCLUSIVE, .data = {.ptr = &listener}};
    good =
        ::epoll_ctl(epoll_.get(), on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, listener.fd, &event) == 0 &&
        good;
  }
  return good;
}

void FrontThread::StopListening() {
  absl::MutexLock lock(&mu_);
  told_to_stop_listening_ = true;
  ::eventfd_write(wake_.get(), 1);
  mu_.Await(absl::Condition(&listens_no_more_));
}

void FrontThread::Recheck() {
  absl::MutexLock lock(&mu_);
  told_to_recheck_ = true;
  ::eventfd_write(wake_.get(), 1);
}

void FrontThread::TakeOrders() {
  eventfd_t count = 0;
  ::eventfd_read(wake_.get(), &count);
  bool recheck = false;
  {
    absl::MutexLock lock(&mu_);
    recheck = std::exchange(told_to_recheck_, false);
    if (told_to_stop_listening_ && !listens_no_more_) {
      if (listens_again_ms_ == 0) Listen(false);
      listens_again_ms_ = 0;
      stopped_listening_ = true;
      listens_no_more_ = true;
    }
  }
  TakeNew();
  if (!recheck) return;
  const std::shared_ptr<const TlsContext> tls = front_->tls();
  for (auto it = connections_.begin(); it != connections_.end();) {
    Connection* const connection = (it++)->get();
    if (tls != nullptr && !connection->Recheck(*tls)) End(connection);
  }
}

void FrontThread::TakeNew() {
  std::vector<std::unique_ptr<Connection>> taken;
  {
    absl::MutexLock lock(&mu_);
    taken.swap(new_);
  }
  for (std::unique_ptr<Connection>& connection : taken) {
    Connection* const added = connection.get();
    if (!added->Watch(epoll_.get())) continue;
    added->place = connections_.insert(connections_.end(), std::move(connection));
    Serve(added);
  }
}

void FrontThread::HandOn(Connection* connection) {
  Queue(connection, 0);
  connection->Unwatch();
  FrontThread* const next = inside_[next_inside_++ % inside_.size()];
  {
    absl::MutexLock lock(&next->mu_);
    next->new_.push_back(std::move(*connection->place));
  }
  connections_.erase(connection->place);
  ::eventfd_write(next->wake_.get(), 1);
}

void FrontThread::Run() {
  while (true) {
    epoll_event events[kEventsPerTurn];
    const int count = ::epoll_wait(epoll_.get(), events, kEventsPerTurn, MillisecondsToNext());
    now_ms_ = MonotonicMs();
    for (int i = 0; i < count; ++i) {
      auto* const source = static_cast<EventSource*>(events[i].data.ptr);
      if (source == nullptr) {
        TakeOrders();
      } else if (source->connection == nullptr) {
        if (!stopped_listening_) Accept(*static_cast<Listener*>(source));
      } else if (!source->connection->dead) {
        if ((events[i].events & (EPOLLHUP | EPOLLERR | EPOLLRDHUP)) != 0)
          source->connection->OnHangUp(*source);
        Serve(source->connection);
      }
    }
    ServeDue();
    ended_.clear();
  }
}

void FrontThread::Accept(const Listener& listener) {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    sockaddr_storage address = {};
    socklen_t size = sizeof(address);
    os::UniqueFd socket(::accept4(listener.fd, reinterpret_cast<sockaddr*>(&address), &size,
                                  SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket.valid()) {
      TakeIn(std::move(socket), AddressText(address));
      continue;
    }
    if (!LacksDescriptors(errno)) return;  // None waits, or its client has left meanwhile.
    front_->log.Refused("", "no more descriptors or memory: is LimitNOFILE too low?");
    front_->limiter.EvictOne();
    if (listens_again_ms_ == 0) Listen(false);
    listens_again_ms_ = now_ms_ + kNoDescriptorsMs;
    return;
  }
}

void FrontThread::TakeIn(os::UniqueFd socket, std::string address) {
  const int on = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  auto connection =
      std::make_unique<Connection>(front_, std::move(socket), std::move(address), now_ms_);
  if (!connection->Begin() || !connection->Watch(epoll_.get())) return;
  Connection* const added = connection.get();
  added->place = connections_.insert(connections_.end(), std::move(connection));
  Queue(added, added->due_ms());
}

void FrontThread::Serve(Connection* connection) {
  if (!connection->Serve(now_ms_, scratch_.data(), scratch_.size())) return End(connection);
  if (!inside_.empty() && connection->is_admitted()) return HandOn(connection);
  Queue(connection, connection->due_ms());
}

void FrontThread::ServeDue() {
  std::vector<Connection*> now_due;
  for (const auto& [due_ms, connection] : due_) {
    if (due_ms > now_ms_) break;
    now_due.push_back(connection);
  }
  for (Connection* const connection : now_due) Serve(connection);
  if (listens_again_ms_ == 0 || listens_again_ms_ > now_ms_) return;
  listens_again_ms_ = 0;
  Listen(true);
}

void FrontThread::Queue(Connection* connection, int64_t due_ms) {
  if (connection->queued_ms == due_ms) return;
  if (connection->queued_ms != 0) due_.erase({connection->queued_ms, connection});
  connection->queued_ms = due_ms;
  if (due_ms != 0) due_.emplace(due_ms, connection);
}

void FrontThread::End(Connection* connection) {
  connection->dead = true;
  Queue(connection, 0);
  ended_.push_back(std::move(*connection->place));
  connections_.erase(connection->place);
}

int FrontThread::MillisecondsToNext() const {
  int64_t next_ms = due_.empty() ? 0 : due_.begin()->first;
  if (listens_again_ms_ != 0 && (next_ms == 0 || listens_again_ms_ < next_ms))
    next_ms = listens_again_ms_;
  if (next_ms == 0) return -1;
  return static_cast<int>(std::clamp<int64_t>(next_ms - MonotonicMs(), 0, 60'000));
}

}  // namespace sluice::gateway
