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
// For one end to take what the other, which is gone, sent last.
constexpr int64_t kFlushMs = 10'000;
// How long a client may go on sending more than the gate lets through.
constexpr int64_t kNewcomerFloodMs = 10'000;
constexpr int64_t kMemberFloodMs = 60'000;
constexpr int kReadsPerTurn = 4;  // Each of a scratch buffer's size; then the others.
constexpr int64_t kAtOnce = 1;
constexpr size_t kSendNowBytes = 32 * 1024;

constexpr std::string_view kNoHttp2 = "what it sends is not HTTP/2";
constexpr std::string_view kNoDescriptors = "no more descriptors";

}  // namespace

Connection::Connection(FrontState* front, os::UniqueFd socket, std::string address, int64_t now_ms)
    : front_(front),
      stream_(socket.get()),
      stage_(front->plaintext ? Stage::kPreface : Stage::kHandshake),
      admitted_until_ms_(now_ms + kAdmissionMs),
      record_(std::make_shared<PeerRecord>()),
      gate_(&front->calls) {
  client_.Set(std::move(socket));
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
  const int fd = client_.fd();
  record_->place =
      front_->limiter.Enter(record_->peer.address, [fd] { ::shutdown(fd, SHUT_RDWR); });
  if (record_->place == nullptr) return Refuse("its address has as many connections as it may");
  if (front_->gives_sockets()) {
    const int preface_bytes = static_cast<int>(Http2Gate::kPreface.size());
    ::setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &preface_bytes, sizeof(preface_bytes));
  }
  due_ms_ = admitted_until_ms_;
  return true;
}

bool Connection::Refuse(std::string_view why) {
  front_->log.Refused(record_->peer.address, why);
  return false;
}

void Connection::OnHangUp(const EventSource& source) {
  absl::MutexLock lock(&record_->mu);
  // epoll reports it again and again, whatever is awaited: the rest is read without events.
  if (source.is_grpc) return grpc_.Unwatch();
  client_.Unwatch();
  client_gone_ = true;
}

bool Connection::Serve(int64_t now_ms, char* scratch, size_t scratch_bytes) {
  absl::MutexLock lock(&record_->mu);
  return ServeLocked(now_ms, scratch, scratch_bytes);
}

void Connection::SendNow() {
  if (stage_ != Stage::kOpen || grpc_gone_ || stream_.has_unsent()) return;
  char scratch[kSendNowBytes];
  // Its own thread sees the end, and sends what is left.
  if (!ForwardToClient(scratch, sizeof(scratch))) ::shutdown(client_.fd(), SHUT_RDWR);
  AwaitEvents();
}

bool Connection::ServeLocked(int64_t now_ms, char* scratch, size_t scratch_bytes) {
  has_more_ = false;
  if (stage_ == Stage::kGiven && client_gone_) return false;
  if (stage_ < Stage::kOpen && (client_gone_ || now_ms >= admitted_until_ms_)) return false;
  if (stage_ == Stage::kHandshake && !ServeHandshake()) return false;
  if (stage_ == Stage::kPreface) {
    const bool good = front_->gives_sockets() ? PeekPreface() : ReadPreface(scratch, scratch_bytes);
    if (!good) return false;
  } else if (stage_ == Stage::kAdmitted && !OpenPairToGrpc()) {
    return false;
  }
  if (stage_ == Stage::kOpen && !ServeOpen(now_ms, scratch, scratch_bytes)) return false;
  AwaitEvents();
  SetDueTime();
  return true;
}

bool Connection::ServeOpen(int64_t now_ms, char* scratch, size_t scratch_bytes) {
  // A client that leaves while the gate is closed takes with it the bytes before the gate.
  if (client_gone_ && gate_opens_ms_ != 0) return false;
  if (gate_opens_ms_ != 0 && now_ms >= gate_opens_ms_) gate_opens_ms_ = 0;
  if (!ForwardToGrpc(now_ms, scratch, scratch_bytes) || !ForwardToClient(scratch, scratch_bytes))
    return false;
  const bool over = (client_gone_ && unsent_grpc_.empty()) || (grpc_gone_ && !stream_.has_unsent());
  if (over && !has_more_) return false;
  if ((client_gone_ || grpc_gone_) && flush_until_ms_ == 0) flush_until_ms_ = now_ms + kFlushMs;
  return flush_until_ms_ == 0 || now_ms < flush_until_ms_;
}

bool Connection::ServeHandshake() {
  // From its first byte on: a client that sends nothing costs no more than a descriptor.
  if (stream_.tls() == nullptr && !stream_.StartTls(*front_->tls())) return false;
  const TlsStream::Step step = stream_.tls()->Handshake();
  const bool sent = stream_.Flush();  // An alert, too.
  if (step == TlsStream::Step::kEnd) {
    // A client that closes without a word checks that somebody listens; it is not logged.
    const std::string& error = stream_.tls()->error();
    return !error.empty() && Refuse("TLS handshake: " + error);
  }
  if (!sent || step == TlsStream::Step::kWait) return sent;
  stream_.tls()->Describe(&record_->peer);
  stage_ = Stage::kPreface;
  return true;
}

bool Connection::ReadPreface(char* scratch, size_t scratch_bytes) {
  size_t size = 0;
  // No more than the preface: what follows is read once the client is admitted.
  const size_t wanted = std::min(Http2Gate::kPreface.size() - preface_.size(), scratch_bytes);
  switch (stream_.Read(scratch, wanted, &size)) {
    case ClientStream::ReadResult::kEnd:
      return false;
    case ClientStream::ReadResult::kNothing:
      return true;
    case ClientStream::ReadResult::kBytes:
      preface_.append(scratch, size);
  }
  if (Http2Gate::kPreface.substr(0, preface_.size()) != preface_) return Refuse(kNoHttp2);
  has_more_ = true;
  if (preface_.size() < Http2Gate::kPreface.size()) return true;
  stage_ = Stage::kAdmitted;
  return front_->asks_for_tokens || BecomeMember();
}

bool Connection::BecomeMember() {
  if (!front_->limiter.Settle(record_->place.get()))
    return Refuse("there are as many connections as there may be");
  record_->known.store(true);
  return true;
}

// The preface stays in the socket, for gRPC.
bool Connection::PeekPreface() {
  char bytes[Http2Gate::kPreface.size()];
  const ssize_t got = ::recv(client_.fd(), bytes, sizeof(bytes), MSG_PEEK | MSG_DONTWAIT);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  const std::string_view there(bytes, static_cast<size_t>(got));
  if (there.empty()) return false;
  if (Http2Gate::kPreface.substr(0, there.size()) != there) return Refuse(kNoHttp2);
  return there.size() < Http2Gate::kPreface.size() || (BecomeMember() && GiveSocketToGrpc());
}

bool Connection::GiveSocketToGrpc() {
  os::UniqueFd given = os::DuplicateFd(client_.fd());
  if (!given.valid()) return Refuse(kNoDescriptors);
  const int any = 1;
  ::setsockopt(given.get(), SOL_SOCKET, SO_RCVLOWAT, &any, sizeof(any));
  stage_ = Stage::kGiven;
  front_->peers.Add(given.get(), record_);
  grpc::AddInsecureChannelFromFd(front_->server, given.release());
  return true;
}

bool Connection::OpenPairToGrpc() {
  auto pair = os::CreateStreamPair();
  if (!pair.ok()) return Refuse(kNoDescriptors);
  grpc_.Set(std::move(pair->first));
  if (!grpc_.Watch(epoll_)) return false;
  front_->peers.Add(pair->second.get(), record_);
  grpc::AddInsecureChannelFromFd(front_->server, pair->second.release());
  stage_ = Stage::kOpen;
  record_->connection = this;  // From now on other threads call SendNow, one at a time.
  SendToGrpc(preface_);
  return true;
}

bool Connection::ForwardToGrpc(int64_t now_ms, char* scratch, size_t scratch_bytes) {
  for (int i = 0; i < kReadsPerTurn; ++i) {
    if (!unsent_grpc_.empty()) SendToGrpc(std::exchange(unsent_grpc_, {}));
    if (!unsent_grpc_.empty() || gate_opens_ms_ != 0) return true;
    if (!trusted_ && record_->known.load()) {
      trusted_ = true;
      gate_.Trust();
    }
    if (!held_.empty()) {
      if (!PassGate(std::exchange(held_, {}), now_ms)) return false;
      continue;
    }
    size_t size = 0;
    switch (stream_.Read(scratch, scratch_bytes, &size)) {
      case ClientStream::ReadResult::kEnd:
        client_gone_ = true;
        return true;
      case ClientStream::ReadResult::kNothing:
        over_limit_since_ms_ = 0;
        return true;
      case ClientStream::ReadResult::kBytes:
        break;
    }
    if (!PassGate({scratch, size}, now_ms)) return false;
  }
  has_more_ = true;
  return true;
}

bool Connection::PassGate(std::string_view bytes, int64_t now_ms) {
  const Http2Gate::Verdict verdict = gate_.OnClient(bytes, now_ms);
  if (!gate_.offence().empty()) return Refuse(gate_.offence());
  if (verdict.wait_ms > 0) {
    gate_opens_ms_ = now_ms + verdict.wait_ms;
    if (over_limit_since_ms_ == 0) over_limit_since_ms_ = now_ms;
    // Its end may stand behind all that it has sent, so it may have left already.
    if (now_ms - over_limit_since_ms_ > (trusted_ ? kMemberFloodMs : kNewcomerFloodMs))
      return Refuse("it does not stop asking for more than it may");
  }
  held_.assign(bytes.substr(verdict.passed));
  SendToGrpc(bytes.substr(0, verdict.passed));
  return true;
}

void Connection::SendToGrpc(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent =
        ::send(grpc_.fd(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno != EAGAIN) {
      // gRPC has closed it; what it sent last is still to be read.
      client_gone_ = true;
      return;
    }
    if (sent < 0) break;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  unsent_grpc_.assign(bytes);
}

bool Connection::ForwardToClient(char* scratch, size_t scratch_bytes) {
  for (int i = 0; i < kReadsPerTurn; ++i) {
    if (stream_.has_unsent() && !stream_.Flush()) return false;
    if (stream_.has_unsent() || grpc_gone_) return true;
    const ssize_t got = ::recv(grpc_.fd(), scratch, scratch_bytes, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return true;
    if (got <= 0) {
      grpc_gone_ = true;
      return stream_.Close();
    }
    const std::string_view bytes(scratch, static_cast<size_t>(got));
    gate_.OnServer(bytes);
    if (!stream_.Write(bytes)) return false;
  }
  has_more_ = true;
  return true;
}

void Connection::SetDueTime() {
  due_ms_ = stage_ < Stage::kOpen ? admitted_until_ms_ : 0;
  for (const int64_t at : {gate_opens_ms_, flush_until_ms_})
    if (at != 0 && (due_ms_ == 0 || at < due_ms_)) due_ms_ = at;
  if (has_more_) due_ms_ = kAtOnce;
}

void Connection::AwaitEvents() {
  if (stage_ == Stage::kGiven) return client_.Await(EPOLLRDHUP);
  const bool reads_client = unsent_grpc_.empty() && gate_opens_ms_ == 0 && !client_gone_;
  // While its bytes stay unread, its leaving would not be noticed otherwise.
  const bool leaves_unread =
      gate_opens_ms_ != 0 || (front_->gives_sockets() && stage_ == Stage::kPreface);
  client_.Await((reads_client ? EPOLLIN : 0U) | (leaves_unread ? EPOLLRDHUP : 0U) |
                (stream_.has_unsent() ? EPOLLOUT : 0U));
  const bool reads_grpc = !stream_.has_unsent() && !grpc_gone_;
  grpc_.Await((reads_grpc ? EPOLLIN : 0U) | (unsent_grpc_.empty() ? 0U : EPOLLOUT));
}

bool Connection::Recheck(const TlsContext& tls) {
  absl::MutexLock lock(&record_->mu);
  if (stream_.tls() == nullptr || stage_ == Stage::kHandshake) return true;
  const absl::Status good = tls.CheckAgain(stream_.tls()->get());
  if (good.ok()) return true;
  return Refuse("its certificate is good no longer: " + std::string(good.message()));
}

}  // namespace sluice::gateway
