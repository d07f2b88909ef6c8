// SPDX-License-Identifier: Apache-2.0
#include "platform_linux/broker/stream_gate.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "broker/event_loop.h"
#include "broker/os/close_elsewhere.h"
#include "platform_linux/errno_status.h"
#include "platform_linux/pass_rights.h"

namespace sluice::broker {
namespace {

// gRPC's own clients acknowledge before they have begun more than a few calls; from then on gRPC's
// limit holds.
constexpr int kMostEarlyCalls = 512;
constexpr size_t kMostBlockBytes = 64 * 1024;  // gRPC takes 8 KiB of headers.
// Resets of one connection: at once, on average, and how many it must have again before it goes on.
constexpr double kMostResets = 256;
constexpr double kResetsPerMs = 1;
constexpr double kResetsToGoOn = 32;
// Each connection has these, whatever others do; more come out of a budget that all connections
// share. For gRPC cleans up after a thousand connections no faster than after one.
constexpr double kMostOwnResets = 32;
constexpr double kOwnResetsPerMs = 0.02;
constexpr double kMostSharedResets = 1024;
constexpr double kSharedResetsPerMs = 1;
constexpr int kRoundsPerTurn = 8;  // Of 4 KiB; then the others.
constexpr int kLastTurns = 64;     // After an end has closed: more than a socket holds.

constexpr uint32_t kReadable = EPOLLIN;
constexpr uint32_t kWritable = EPOLLOUT;

}  // namespace

int FrameMeter::Count(const char* bytes, size_t size) {
  resets_ = 0;
  frames_.Take({bytes, size}, [this](const wire::FrameCutter::Header& frame) {
    OnFrame(frame);
    return true;
  });
  return resets_;
}

void FrameMeter::OnFrame(const wire::FrameCutter::Header& frame) {
  const uint8_t type = frame.type;
  if (type == wire::http2::kResetStream) ++resets_;
  if (type == wire::http2::kSettings && (frame.flags & wire::http2::kAck) != 0)
    acknowledged_ = true;
  if (type == wire::http2::kHeaders && !acknowledged_ && ++early_calls_ > kMostEarlyCalls)
    broken_ = true;
  if (type != wire::http2::kHeaders && type != wire::http2::kContinuation) return;
  if (type == wire::http2::kHeaders) block_bytes_ = 0;
  // Frames without a byte count, too.
  block_bytes_ += wire::FrameCutter::kHeaderBytes + frame.size;
  if (block_bytes_ > kMostBlockBytes) broken_ = true;
  if ((frame.flags & wire::http2::kEndHeaders) != 0) block_bytes_ = 0;
}

absl::StatusOr<std::unique_ptr<StreamGate>> StreamGate::Start() {
  os::UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  os::UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!epoll.valid() || !wake.valid()) return os::ErrnoStatus(errno, "epoll_create1");
  epoll_event event = {.events = EPOLLIN, .data = {.ptr = nullptr}};
  if (::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, wake.get(), &event) != 0) {
    return os::ErrnoStatus(errno, "epoll_ctl");
  }
  return std::unique_ptr<StreamGate>(new StreamGate(std::move(epoll), std::move(wake)));
}

StreamGate::StreamGate(os::UniqueFd epoll, os::UniqueFd wake)
    : epoll_(std::move(epoll)), wake_(std::move(wake)), thread_([this] { Run(); }) {}

StreamGate::~StreamGate() {
  {
    absl::MutexLock lock(&mutex_);
    stop_ = true;
  }
  ::eventfd_write(wake_.get(), 1);
  thread_.join();
}

void StreamGate::Add(os::UniqueFd client, os::UniqueFd server) {
  auto stream = std::make_unique<Stream>();
  stream->up.from = stream->down.to = client.get();
  stream->up.to = stream->down.from = server.get();
  stream->up.may_bring_descriptors = os::TakesDescriptors(client.get());
  stream->client = std::move(client);
  stream->server = std::move(server);
  stream->resets_left = kMostResets;
  stream->own_left = kMostOwnResets;
  {
    absl::MutexLock lock(&mutex_);
    new_.push_back(std::move(stream));
  }
  ::eventfd_write(wake_.get(), 1);
}

void StreamGate::TakeNew() {
  eventfd_t count;
  ::eventfd_read(wake_.get(), &count);
  std::vector<std::unique_ptr<Stream>> taken;
  {
    absl::MutexLock lock(&mutex_);
    taken.swap(new_);
  }
  for (std::unique_ptr<Stream>& stream : taken) {
    bool good = true;
    for (const int fd : {stream->client.get(), stream->server.get()}) {
      epoll_event event = {.events = EPOLLIN, .data = {.ptr = stream.get()}};
      good = good && ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
    }
    stream->client_events = stream->server_events = EPOLLIN;
    if (good) {
      Stream* const added = stream.get();
      added->place = streams_.insert(streams_.end(), std::move(stream));
    } else {
      Forget(stream.get());
    }
  }
}

// A client that sends descriptors, which nobody asked for, counts as at its end.
ssize_t StreamGate::Receive(Way* way) {
  size_t size = way->bytes.size();
  if (way->may_bring_descriptors) {
    bool descriptors = false;
    const ssize_t there =
        os::PeekFor(way->from, way->bytes.data(), size, MSG_DONTWAIT, &descriptors);
    if (there <= 0) return there;
    if (descriptors) return 0;
    size = static_cast<size_t>(there);  // Frames after that may.
  }
  return ::recv(way->from, way->bytes.data(), size, MSG_DONTWAIT);
}

// Passes bytes on before it reads more: at an end of file nothing is left.
bool StreamGate::Pass(Stream* stream, Way* way) {
  for (int round = 0; round < kRoundsPerTurn; ++round) {
    if (way->empty()) {
      if (way == &stream->up && stream->waits_until_ms != 0) return true;
      const ssize_t got = Receive(way);
      if (got == 0) return false;
      if (got < 0) return errno == EAGAIN || errno == EINTR;
      way->begin = 0;
      way->end = static_cast<size_t>(got);
      if (way == &stream->up) {
        Charge(stream, stream->meter.Count(way->bytes.data(), way->end));
        if (stream->meter.broken()) return false;  // As if it had left.
      }
    }
    const ssize_t sent = ::send(way->to, way->bytes.data() + way->begin, way->end - way->begin,
                                MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) return errno == EAGAIN || errno == EINTR;
    way->begin += static_cast<size_t>(sent);
  }
  return true;
}

void StreamGate::Charge(Stream* stream, int resets) {
  if (resets == 0) return;
  const int64_t now_ms = MonotonicMs();
  const auto earn = [now_ms](double left, double most, double per_ms, int64_t since_ms) {
    return std::min(most, left + static_cast<double>(now_ms - since_ms) * per_ms);
  };
  const int64_t since_ms = std::exchange(stream->earned_ms, now_ms);
  stream->resets_left = earn(stream->resets_left, kMostResets, kResetsPerMs, since_ms) - resets;
  const double own = earn(stream->own_left, kMostOwnResets, kOwnResetsPerMs, since_ms);
  const double beyond = std::max(resets - own, 0.0);
  stream->own_left = std::max(own - resets, 0.0);
  shared_left_ = earn(shared_left_, kMostSharedResets, kSharedResetsPerMs,
                      std::exchange(shared_earned_ms_, now_ms)) -
                 beyond;
  double wait_ms = 0;
  if (stream->resets_left < 0) wait_ms = (kResetsToGoOn - stream->resets_left) / kResetsPerMs;
  if (beyond > 0 && shared_left_ < 0)
    wait_ms = std::max(wait_ms, (kResetsToGoOn - shared_left_) / kSharedResetsPerMs);
  if (wait_ms == 0) return;
  stream->waits_until_ms = now_ms + static_cast<int64_t>(wait_ms);
  waiting_.emplace(stream->waits_until_ms, stream);
}

void StreamGate::Await(Stream* stream) {
  const auto await = [&](int fd, uint32_t* now, uint32_t wanted) {
    if (*now == wanted) return;
    *now = wanted;
    epoll_event event = {.events = wanted, .data = {.ptr = stream}};
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
  };
  const uint32_t hears_client = stream->up.empty() && stream->waits_until_ms == 0 ? kReadable : 0;
  const uint32_t hears_server = stream->down.empty() ? kReadable : 0;
  await(stream->client.get(), &stream->client_events,
        hears_client | (stream->down.empty() ? 0 : kWritable));
  await(stream->server.get(), &stream->server_events,
        hears_server | (stream->up.empty() ? 0 : kWritable));
}

void StreamGate::Serve(Stream* stream) {
  if (!Pass(stream, &stream->up) || !Pass(stream, &stream->down)) return End(stream);
  Await(stream);
}

// After one end has closed: passes bytes on as far as the other end takes them now. The event
// repeats, and a peer that does not read must not keep this thread busy.
void StreamGate::PassLast(Stream* stream) {
  for (Way* const way : {&stream->up, &stream->down}) {
    for (int turn = 0; turn < kLastTurns; ++turn) {
      if (stream->waits_until_ms != 0 || !Pass(stream, way) || !way->empty()) break;
    }
  }
  End(stream);
}

// The hub has a descriptor of the client's socket, too: closing ours would neither end it nor take
// it out of the epoll set.
void StreamGate::Forget(Stream* stream) {
  waiting_.erase({stream->waits_until_ms, stream});
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, stream->client.get(), nullptr);
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, stream->server.get(), nullptr);
  ::shutdown(stream->client.get(), SHUT_RDWR);
  os::CloseElsewhere(std::move(stream->client));
}

void StreamGate::End(Stream* stream) {
  Forget(stream);
  streams_.erase(stream->place);
}

int StreamGate::MillisecondsToNext() const {
  if (waiting_.empty()) return -1;
  return static_cast<int>(std::max<int64_t>(waiting_.begin()->first - MonotonicMs(), 0));
}

void StreamGate::ServeRested() {
  while (!waiting_.empty() && waiting_.begin()->first <= MonotonicMs()) {
    Stream* const stream = waiting_.extract(waiting_.begin()).value().second;
    stream->waits_until_ms = 0;
    Serve(stream);
  }
}

void StreamGate::Run() {
  while (true) {
    // One event: its stream may be gone after it, and others of it with it.
    epoll_event event = {};
    const int count = ::epoll_wait(epoll_.get(), &event, 1, MillisecondsToNext());
    {
      absl::MutexLock lock(&mutex_);
      if (stop_) return;
    }
    if (count == 1 && event.data.ptr == nullptr) TakeNew();
    if (count == 1 && event.data.ptr != nullptr) {
      auto* stream = static_cast<Stream*>(event.data.ptr);
      if ((event.events & (EPOLLHUP | EPOLLERR)) != 0) {
        PassLast(stream);
      } else {
        Serve(stream);
      }
    }
    ServeRested();
  }
}

}  // namespace sluice::broker
