// SPDX-License-Identifier: Apache-2.0
#include "platform_linux/gateway/connection.h"

#include <grpcpp/server_posix.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "broker/os/local_socket.h"

namespace sluice::gateway {
namespace {

// From the first byte to the end of HTTP/2's preface.
constexpr int64_t kAdmissionMs = 10'000;
// Time for an open end to take the other one's last bytes.
constexpr int64_t kLastWordsMs = 10'000;
// How long a client may exceed its rate before it is ended.
constexpr int64_t kNewcomerFloodMs = 10'000;
constexpr int64_t kMemberFloodMs = 60'000;
constexpr int kReadsPerTurn = 4;  // Each of a scratch buffer's size; then the others.
constexpr int64_t kAtOnce = 1;
constexpr size_t kSendNowBytes = 32 * 1024;

}  // namespace

Connection::Connection(FrontState* front, os::UniqueFd socket, std::string address, int64_t now_ms)
    : front_(front),
      client_(std::move(socket)),
      stage_(front->plaintext ? Stage::kPreface : Stage::kHandshake),
      admitted_until_ms_(now_ms + kAdmissionMs),
      record_(std::make_shared<PeerRecord>()),
      gate_(&front->calls) {
  record_->peer.address = std::move(address);
}

Connection::~Connection() {
  {
    absl::MutexLock lock(&record_->mu);
    record_->connection = nullptr;
  }
  front_->peers.Remove(record_.get());
  if (record_->place != nullptr) record_->place->End();
}

bool Connection::Begin() {
  const int fd = client_.get();
  record_->place =
      front_->admission.Enter(record_->peer.address, [fd] { ::shutdown(fd, SHUT_RDWR); });
  if (record_->place == nullptr) return Offence("its address has as many connections as it may");
  if (front_->gives_sockets()) {
    const int preface_bytes = static_cast<int>(Http2Gate::kPreface.size());
    ::setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &preface_bytes, sizeof(preface_bytes));
  }
  due_ms_ = admitted_until_ms_;
  client_events_ = EPOLLIN;
  return true;
}

bool Connection::Watch(int epoll) {
  epoll_ = epoll;
  epoll_event event = {.events = client_events_, .data = {.ptr = &client_source_}};
  client_watched_ = ::epoll_ctl(epoll_, EPOLL_CTL_ADD, client_.get(), &event) == 0;
  return client_watched_;
}

void Connection::Unwatch() {
  ::epoll_ctl(epoll_, EPOLL_CTL_DEL, client_.get(), nullptr);
  client_watched_ = false;
}

bool Connection::Offence(std::string_view what) {
  front_->log.Refused(record_->peer.address, what);
  return false;
}

void Connection::OnHangUp(const Source* source) {
  absl::MutexLock lock(&record_->mu);
  // epoll repeats this event whatever is awaited. The bytes that are left are read without events.
  if (source->inner) {
    ::epoll_ctl(epoll_, EPOLL_CTL_DEL, inner_.get(), nullptr);
    inner_watched_ = false;
    return;
  }
  Unwatch();
  client_gone_ = true;
}

bool Connection::Serve(int64_t now_ms, char* scratch, size_t scratch_bytes) {
  absl::MutexLock lock(&record_->mu);
  return ServeLocked(now_ms, scratch, scratch_bytes);
}

void Connection::SendNow() {
  if (stage_ != Stage::kOpen || grpc_gone_ || !to_client_.empty()) return;
  char scratch[kSendNowBytes];
  // Its own thread finds the error, and the rest of the bytes.
  if (!PumpDown(scratch, sizeof(scratch))) ::shutdown(client_.get(), SHUT_RDWR);
  AwaitEvents();
}

bool Connection::ServeLocked(int64_t now_ms, char* scratch, size_t scratch_bytes) {
  more_ = false;
  if (stage_ == Stage::kGiven && client_gone_) return false;
  if (stage_ < Stage::kOpen && (client_gone_ || now_ms >= admitted_until_ms_)) return false;
  if (stage_ == Stage::kHandshake && !ServeHandshake()) return false;
  if (stage_ == Stage::kPreface) {
    const bool good =
        front_->gives_sockets() ? PeekPreface() : ServePreface(scratch, scratch_bytes);
    if (!good) return false;
  } else if (stage_ == Stage::kAdmitted && !Open()) {
    return false;
  }
  if (stage_ == Stage::kOpen && !ServeOpen(now_ms, scratch, scratch_bytes)) return false;
  Await();
  return true;
}

bool Connection::ServeOpen(int64_t now_ms, char* scratch, size_t scratch_bytes) {
  // A client that leaves while it is delayed is dropped.
  if (client_gone_ && waits_until_ms_ != 0) return false;
  if (waits_until_ms_ != 0 && now_ms >= waits_until_ms_) waits_until_ms_ = 0;
  if (!PumpUp(now_ms, scratch, scratch_bytes) || !PumpDown(scratch, scratch_bytes)) return false;
  const bool over = (client_gone_ && to_grpc_.empty()) || (grpc_gone_ && to_client_.empty());
  if (over && !more_) return false;
  if ((client_gone_ || grpc_gone_) && last_words_ms_ == 0) last_words_ms_ = now_ms + kLastWordsMs;
  return last_words_ms_ == 0 || now_ms < last_words_ms_;
}

bool Connection::ServeHandshake() {
  // From its first byte on: a silent client costs no more than a descriptor.
  if (tls_ == nullptr) tls_ = TlsStream::Create(*front_->tls(), client_.get());
  if (tls_ == nullptr) return false;
  const TlsStream::Step step = tls_->Handshake();
  const bool sent = SendToClient({});  // An alert, too.
  if (step == TlsStream::Step::kEnd) {
    // A client that leaves without a word only looks whether somebody listens.
    return !tls_->error().empty() && Offence("TLS handshake: " + tls_->error());
  }
  if (!sent || step == TlsStream::Step::kWait) return sent;
  tls_->Describe(&record_->peer);
  stage_ = Stage::kPreface;
  return true;
}

bool Connection::ServePreface(char* scratch, size_t scratch_bytes) {
  size_t size = 0;
  // Reads the preface and no more, until the client is admitted.
  const size_t wanted = std::min(Http2Gate::kPreface.size() - preface_.size(), scratch_bytes);
  switch (ReadClient(scratch, wanted, &size)) {
    case Got::kEnd:
      return false;
    case Got::kNothing:
      return true;
    case Got::kBytes:
      preface_.append(scratch, size);
  }
  if (Http2Gate::kPreface.substr(0, preface_.size()) != preface_)
    return Offence("what it sends is not HTTP/2");
  more_ = true;
  if (preface_.size() < Http2Gate::kPreface.size()) return true;
  stage_ = Stage::kAdmitted;
  return front_->asks_for_tokens || Settle();
}

bool Connection::Settle() {
  if (!front_->admission.Settle(record_->place.get()))
    return Offence("there are as many connections as there may be");
  record_->known.store(true);
  return true;
}

// The preface stays in the socket, for gRPC.
bool Connection::PeekPreface() {
  char bytes[Http2Gate::kPreface.size()];
  const ssize_t got = ::recv(client_.get(), bytes, sizeof(bytes), MSG_PEEK | MSG_DONTWAIT);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  const std::string_view there(bytes, static_cast<size_t>(got));
  if (there.empty()) return false;
  if (Http2Gate::kPreface.substr(0, there.size()) != there)
    return Offence("what it sends is not HTTP/2");
  return there.size() < Http2Gate::kPreface.size() || (Settle() && Give());
}

bool Connection::Give() {
  os::UniqueFd given = os::DuplicateFd(client_.get());
  if (!given.valid()) return Offence("no more descriptors");
  const int any = 1;
  ::setsockopt(given.get(), SOL_SOCKET, SO_RCVLOWAT, &any, sizeof(any));
  stage_ = Stage::kGiven;
  front_->peers.Add(given.get(), record_);
  grpc::AddInsecureChannelFromFd(front_->server, given.release());
  return true;
}

bool Connection::Open() {
  auto pair = os::CreateStreamPair();
  if (!pair.ok()) return Offence("no more descriptors");
  inner_ = std::move(pair->first);
  epoll_event event = {.events = EPOLLIN, .data = {.ptr = &inner_source_}};
  inner_events_ = EPOLLIN;
  if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, inner_.get(), &event) != 0) return false;
  inner_watched_ = true;
  front_->peers.Add(pair->second.get(), record_);
  grpc::AddInsecureChannelFromFd(front_->server, pair->second.release());
  stage_ = Stage::kOpen;
  record_->connection = this;  // From now on other threads come, one at a time.
  PassUp(preface_);
  return true;
}

bool Connection::PumpUp(int64_t now_ms, char* scratch, size_t scratch_bytes) {
  for (int i = 0; i < kReadsPerTurn; ++i) {
    if (!to_grpc_.empty()) PassUp(std::exchange(to_grpc_, {}));
    if (!to_grpc_.empty() || waits_until_ms_ != 0) return true;
    if (!trusted_ && record_->known.load()) {
      trusted_ = true;
      gate_.Trust();
    }
    if (!held_.empty()) {
      if (!Judge(std::exchange(held_, {}), now_ms)) return false;
      continue;
    }
    size_t size = 0;
    switch (ReadClient(scratch, scratch_bytes, &size)) {
      case Got::kEnd:
        client_gone_ = true;
        return true;
      case Got::kNothing:
        overdrawn_since_ms_ = 0;
        return true;
      case Got::kBytes:
        break;
    }
    if (!Judge({scratch, size}, now_ms)) return false;
  }
  more_ = true;
  return true;
}

bool Connection::Judge(std::string_view bytes, int64_t now_ms) {
  const Http2Gate::Verdict verdict = gate_.OnClient(bytes, now_ms);
  if (!gate_.offence().empty()) return Offence(gate_.offence());
  if (verdict.wait_ms > 0) {
    waits_until_ms_ = now_ms + verdict.wait_ms;
    if (overdrawn_since_ms_ == 0) overdrawn_since_ms_ = now_ms;
    // The client may have left: its end of file comes after all that it has sent.
    if (now_ms - overdrawn_since_ms_ > (trusted_ ? kMemberFloodMs : kNewcomerFloodMs))
      return Offence("it does not stop asking for more than it may");
  }
  held_.assign(bytes.substr(verdict.passed));
  PassUp(bytes.substr(0, verdict.passed));
  return true;
}

void Connection::PassUp(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent =
        ::send(inner_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno != EAGAIN) {
      // gRPC has closed it; its last bytes are still to be read.
      client_gone_ = true;
      return;
    }
    if (sent < 0) break;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  to_grpc_.assign(bytes);
}

bool Connection::PumpDown(char* scratch, size_t scratch_bytes) {
  for (int i = 0; i < kReadsPerTurn; ++i) {
    if (!to_client_.empty() && !SendToClient({})) return false;
    if (!to_client_.empty() || grpc_gone_) return true;
    const ssize_t got = ::recv(inner_.get(), scratch, scratch_bytes, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return true;
    if (got <= 0) {
      grpc_gone_ = true;
      if (tls_ != nullptr && !std::exchange(tls_closed_, true)) tls_->Close();
      return SendToClient({});
    }
    const std::string_view bytes(scratch, static_cast<size_t>(got));
    gate_.OnServer(bytes);
    if (!WriteClient(bytes)) return false;
  }
  more_ = true;
  return true;
}

// As many as there are, up to `room`: a TLS record has 16 KiB at most.
Connection::Got Connection::ReadClient(char* out, size_t room, size_t* size) {
  *size = 0;
  if (tls_ == nullptr) {
    ssize_t got = -1;
    do {
      got = ::recv(client_.get(), out, room, MSG_DONTWAIT);
    } while (got < 0 && errno == EINTR);
    if (got < 0 && errno == EAGAIN) return Got::kNothing;
    if (got <= 0) return Got::kEnd;
    *size = static_cast<size_t>(got);
    return Got::kBytes;
  }
  while (*size < room) {
    size_t part = 0;
    const TlsStream::Step step = tls_->Read(out + *size, room - *size, &part);
    if (step == TlsStream::Step::kDone) {
      *size += part;
      continue;
    }
    // An answer to a peer that asks for other keys.
    if (!tls_->Outgoing().empty() && !SendToClient({})) return Got::kEnd;
    if (*size > 0) return Got::kBytes;  // The end is told again.
    return step == TlsStream::Step::kEnd ? Got::kEnd : Got::kNothing;
  }
  return Got::kBytes;
}

bool Connection::WriteClient(std::string_view bytes) {
  if (tls_ == nullptr) return SendToClient(bytes);
  return tls_->Write(bytes) && SendToClient({});
}

// Sends what is left from before, what TLS has, and `bytes`; keeps what the socket does not take.
bool Connection::SendToClient(std::string_view bytes) {
  if (tls_ != nullptr) bytes = tls_->Outgoing();
  const bool before = !to_client_.empty();
  if (before) to_client_.append(bytes);
  std::string_view left = before ? std::string_view(to_client_) : bytes;
  while (!left.empty()) {
    const ssize_t sent =
        ::send(client_.get(), left.data(), left.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno != EAGAIN) return false;
    if (sent < 0) break;
    left.remove_prefix(static_cast<size_t>(sent));
  }
  std::string kept(left);
  to_client_ = std::move(kept);
  if (tls_ != nullptr) tls_->TookOutgoing();
  return true;
}

void Connection::AwaitAt(Source* source, int fd, uint32_t* now, uint32_t wanted) {
  if (*now == wanted) return;
  *now = wanted;
  epoll_event event = {.events = wanted, .data = {.ptr = source}};
  ::epoll_ctl(epoll_, EPOLL_CTL_MOD, fd, &event);
}

void Connection::Await() {
  AwaitEvents();
  due_ms_ = stage_ < Stage::kOpen ? admitted_until_ms_ : 0;
  for (const int64_t at : {waits_until_ms_, last_words_ms_})
    if (at != 0 && (due_ms_ == 0 || at < due_ms_)) due_ms_ = at;
  if (more_) due_ms_ = kAtOnce;
}

void Connection::AwaitEvents() {
  if (client_watched_ && stage_ == Stage::kGiven) {
    AwaitAt(&client_source_, client_.get(), &client_events_, EPOLLRDHUP);
  } else if (client_watched_) {
    // While its bytes are left unread, notice that the client leaves.
    const bool waits =
        waits_until_ms_ != 0 || (front_->gives_sockets() && stage_ == Stage::kPreface);
    const bool hears_client = to_grpc_.empty() && waits_until_ms_ == 0 && !client_gone_;
    AwaitAt(&client_source_, client_.get(), &client_events_,
            (hears_client ? EPOLLIN : 0U) | (waits ? EPOLLRDHUP : 0U) |
                (to_client_.empty() ? 0U : EPOLLOUT));
  }
  if (inner_watched_) {
    const bool hears_grpc = to_client_.empty() && !grpc_gone_;
    AwaitAt(&inner_source_, inner_.get(), &inner_events_,
            (hears_grpc ? EPOLLIN : 0U) | (to_grpc_.empty() ? 0U : EPOLLOUT));
  }
}

bool Connection::Recheck(const TlsContext& tls) {
  absl::MutexLock lock(&record_->mu);
  if (tls_ == nullptr || stage_ == Stage::kHandshake) return true;
  const absl::Status good = tls.CheckAgain(tls_->get());
  if (good.ok()) return true;
  return Offence("its certificate is good no longer: " + std::string(good.message()));
}

}  // namespace sluice::gateway
