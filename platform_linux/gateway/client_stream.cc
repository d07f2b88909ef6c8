// SPDX-License-Identifier: Apache-2.0
#include "platform_linux/gateway/client_stream.h"

#include <sys/socket.h>

#include <cerrno>
#include <utility>

namespace sluice::gateway {

bool ClientStream::StartTls(const TlsContext& context) {
  tls_ = TlsStream::Create(context, socket_);
  return tls_ != nullptr;
}

ClientStream::ReadResult ClientStream::ReadPlain(char* out, size_t room, size_t* size) {
  ssize_t got = -1;
  do {
    got = ::recv(socket_, out, room, MSG_DONTWAIT);
  } while (got < 0 && errno == EINTR);
  if (got < 0 && errno == EAGAIN) return ReadResult::kNothing;
  if (got <= 0) return ReadResult::kEnd;
  *size = static_cast<size_t>(got);
  return ReadResult::kBytes;
}

ClientStream::ReadResult ClientStream::Read(char* out, size_t room, size_t* size) {
  *size = 0;
  if (tls_ == nullptr) return ReadPlain(out, room, size);
  while (*size < room) {  // A TLS record has 16 KiB at most.
    size_t part = 0;
    const TlsStream::Step step = tls_->Read(out + *size, room - *size, &part);
    if (step == TlsStream::Step::kDone) {
      *size += part;
      continue;
    }
    // The answer to a peer that asks for other keys.
    if (!tls_->Outgoing().empty() && !Flush()) return ReadResult::kEnd;
    if (*size > 0) return ReadResult::kBytes;  // The next read returns the end again.
    return step == TlsStream::Step::kEnd ? ReadResult::kEnd : ReadResult::kNothing;
  }
  return ReadResult::kBytes;
}

bool ClientStream::Write(std::string_view bytes) {
  if (tls_ == nullptr) return Send(bytes);
  return tls_->Write(bytes) && Flush();
}

bool ClientStream::Close() {
  if (tls_ != nullptr && !std::exchange(closed_, true)) tls_->Close();
  return Flush();
}

// Sends what is left from before, what TLS has, and `bytes`.
bool ClientStream::Send(std::string_view bytes) {
  if (tls_ != nullptr) bytes = tls_->Outgoing();
  const bool before = has_unsent();
  if (before) unsent_.append(bytes);
  std::string_view left = before ? std::string_view(unsent_) : bytes;
  while (!left.empty()) {
    const ssize_t sent = ::send(socket_, left.data(), left.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno != EAGAIN) return false;
    if (sent < 0) break;
    left.remove_prefix(static_cast<size_t>(sent));
  }
  std::string kept(left);  // `left` may point into unsent_.
  unsent_ = std::move(kept);
  if (tls_ != nullptr) tls_->TookOutgoing();
  return true;
}

}  // namespace sluice::gateway
