// SPDX-License-Identifier: Apache-2.0
#include "broker/gateway/broker_link.h"

#include <sys/epoll.h>

#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "broker/base/log.h"
#include "broker/os/local_socket.h"
#include "broker/os/shared_memory.h"
#include "proto/status_macros.h"

namespace sluice {
namespace {

constexpr size_t kMaxSnapshotBytes = 64 << 20;
constexpr int kEventsPerWakeUp = 16;

// What the broker's errno means to a client on the network.
absl::Status RefusalStatus(const SessionOpened& opened) {
  const std::string message =
      opened.message[0] != '\0' ? opened.message : std::strerror(opened.status);
  switch (opened.status) {
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(message);
    case ESHUTDOWN:
      return absl::UnavailableError(message);
    case EIO:
      return absl::InternalError(message);
    default:
      return absl::ResourceExhaustedError(message);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<BrokerLink>> BrokerLink::Connect(UniqueFd socket,
                                                                absl::Duration timeout) {
  auto hello = MakeMessage<GatewayHello>();
  SetString(hello.features, "sync");
  RETURN_IF_ERROR(SendMessage(socket.get(), &hello, sizeof(hello)));
  RETURN_IF_ERROR(WaitReadable(socket.get(), static_cast<int>(absl::ToInt64Milliseconds(timeout))));
  char packet[kMaxBrokerMessageBytes];
  std::vector<UniqueFd> fds;
  ASSIGN_OR_RETURN(const size_t size,
                   ReceiveMessage(socket.get(), packet, sizeof(packet), &fds, 1));
  if (size == 0) return absl::AbortedError("the broker has closed the connection");
  Welcome welcome;
  if (!ParseMessage(packet, size, &welcome) || !IsTerminated(welcome.message)) {
    return absl::InvalidArgumentError("the broker's first message is no welcome");
  }
  if (welcome.status != 0) return absl::PermissionDeniedError(welcome.message);
  ASSIGN_OR_RETURN(Snapshot snapshot, ReadSnapshot(welcome, fds));
  return std::unique_ptr<BrokerLink>(new BrokerLink(std::move(socket), std::move(snapshot)));
}

absl::StatusOr<BrokerLink::Snapshot> BrokerLink::ReadSnapshot(const Welcome& welcome,
                                                              std::vector<UniqueFd>& fds) {
  Snapshot snapshot{"", welcome.message};
  if (welcome.snapshot_size == 0) return snapshot;
  if (fds.size() != 1) return absl::InvalidArgumentError("a welcome without its snapshot");
  ASSIGN_OR_RETURN(snapshot.bytes, ReadSealedCopy(fds[0].get(), kMaxSnapshotBytes));
  return snapshot;
}

absl::Status BrokerLink::Start(std::function<void()> on_gone) {
  on_gone_ = std::move(on_gone);
  epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  epoll_event event = {EPOLLIN, {.u64 = 0}};
  if (!epoll_.valid() || ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, socket_.get(), &event) != 0) {
    return absl::ErrnoToStatus(errno, "epoll");
  }
  std::thread([this] { Run(); }).detach();
  return absl::OkStatus();
}

absl::Status BrokerLink::Watch(std::shared_ptr<Watched> watched) {
  const int fd = watched->fd();
  absl::MutexLock lock(&mu_);
  const uint64_t id = next_watch_++;
  epoll_event event = {EPOLLIN, {.u64 = id}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0)
    return absl::ErrnoToStatus(errno, "epoll_ctl");
  watched_.emplace(id, std::move(watched));
  return absl::OkStatus();
}

void BrokerLink::Run() {
  while (true) {
    epoll_event events[kEventsPerWakeUp];
    const int count = ::epoll_wait(epoll_.get(), events, kEventsPerWakeUp, -1);
    for (int i = 0; i < count; ++i) {
      const uint64_t id = events[i].data.u64;
      if (id == 0) {
        if (OnBrokerReadable()) continue;
        ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, socket_.get(), nullptr);
        OnBrokerGone();
        continue;
      }
      std::shared_ptr<Watched> watched;
      {
        absl::MutexLock lock(&mu_);
        if (const auto it = watched_.find(id); it != watched_.end()) watched = it->second;
      }
      if (watched == nullptr || watched->OnReadable()) continue;
      ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, watched->fd(), nullptr);
      absl::MutexLock lock(&mu_);
      watched_.erase(id);
    }
  }
}

bool BrokerLink::OnBrokerReadable() {
  char packet[kMaxBrokerMessageBytes];
  std::vector<UniqueFd> fds;
  const absl::StatusOr<size_t> size =
      ReceiveMessage(socket_.get(), packet, sizeof(packet), &fds, 1);
  if (!size.ok()) return false;
  Welcome welcome;
  if (ParseMessage(packet, *size, &welcome)) {
    if (!IsTerminated(welcome.message)) return false;
    absl::StatusOr<Snapshot> fresh = ReadSnapshot(welcome, fds);
    if (!fresh.ok()) return false;
    absl::MutexLock lock(&mu_);
    snapshot_ = *std::move(fresh);
    return true;
  }
  SessionOpened opened;
  if (!ParseMessage(packet, *size, &opened) || !IsTerminated(opened.message)) return false;
  absl::MutexLock lock(&mu_);
  const auto it = requests_.find(opened.request_id);
  if (it == requests_.end())
    return true;  // Nobody waits any more: the channel closes, and with it the worker.
  Request& request = *it->second;
  if (opened.status != 0) {
    request.result = RefusalStatus(opened);
  } else if (fds.size() != 1) {
    request.result = absl::InternalError("the broker opened a session without its channel");
  } else {
    request.result = Session{opened.session_id, std::move(fds[0]), opened.max_in_flight_commands};
  }
  request.done = true;
  answered_.SignalAll();
  return true;
}

void BrokerLink::OnBrokerGone() {
  {
    absl::MutexLock lock(&mu_);
    gone_ = true;
    answered_.SignalAll();
  }
  on_gone_();
}

absl::StatusOr<BrokerLink::Session> BrokerLink::OpenSession(uint32_t flags, const std::string& peer,
                                                            const std::string& process_name,
                                                            absl::Duration timeout) {
  auto open = MakeMessage<GatewayOpen>();
  open.flags = flags;
  SetString(open.peer, peer);
  SetString(open.process_name, process_name);
  Request request;
  const absl::Time deadline = absl::Now() + timeout;
  absl::MutexLock lock(&mu_);
  open.request_id = next_request_++;
  if (gone_ || !SendMessage(socket_.get(), &open, sizeof(open)).ok()) {
    return absl::UnavailableError(
        "the daemon is stopping or starting again; try again in a moment");
  }
  requests_.emplace(open.request_id, &request);
  bool late = false;
  while (!request.done && !gone_ && !late) late = answered_.WaitWithDeadline(&mu_, deadline);
  requests_.erase(open.request_id);
  if (request.done) return std::move(request.result);
  return absl::UnavailableError(late ? "the daemon did not answer in time" : "the daemon is gone");
}

}  // namespace sluice
