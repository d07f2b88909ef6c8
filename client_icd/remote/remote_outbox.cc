// SPDX-License-Identifier: Apache-2.0
#include "client_icd/remote/remote_outbox.h"

#include <utility>

namespace sluice {

void RemoteOutbox::Append(const FrameHeader& header, std::string_view message, std::string_view payload) {
  absl::MutexLock lock(&mu_);
  size_t added = 0;
  const uint64_t frame_bytes = sizeof(header) + message.size() + payload.size();
  CutFrame(header, message, payload, kMaxPieceBody,
           [&](const PieceHeader& piece, std::string_view a, std::string_view b, std::string_view c)
               ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
                 if (messages_.empty() || messages_.back().size() >= kMessageBytes) {
                   messages_.emplace_back();
                   if (frame_bytes > kMaxPieceBody) messages_.back().reserve(kMessageBytes + kMaxPieceBody + 64);
                 }
                 std::string& out = messages_.back();
                 out.append(reinterpret_cast<const char*>(&piece), sizeof(piece));
                 out.append(a).append(b).append(c);
                 const size_t padded = PaddedPieceBytes(piece.body_bytes);
                 out.append(padded - sizeof(piece) - piece.body_bytes, '\0');
                 added += padded;
                 return true;
               });
  bytes_.fetch_add(added, std::memory_order_seq_cst);
}

bool RemoteOutbox::Take(std::string* pieces) {
  absl::MutexLock lock(&mu_);
  if (writing_.load(std::memory_order_relaxed) || messages_.empty()) return false;
  *pieces = std::move(messages_.front());
  messages_.pop_front();
  bytes_.fetch_sub(pieces->size(), std::memory_order_seq_cst);
  writing_.store(true, std::memory_order_seq_cst);
  return true;
}

void RemoteOutbox::Written() {
  absl::MutexLock lock(&mu_);
  writing_.store(false, std::memory_order_seq_cst);
  written_.SignalAll();
}

void RemoteOutbox::AwaitWritten(absl::Duration timeout) {
  absl::MutexLock lock(&mu_);
  if (writing_.load(std::memory_order_relaxed)) written_.WaitWithTimeout(&mu_, timeout);
}

}  // namespace sluice
