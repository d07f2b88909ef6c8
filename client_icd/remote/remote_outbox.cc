// SPDX-License-Identifier: Apache-2.0
#include "client_icd/remote/remote_outbox.h"

#include <utility>

namespace sluice::client {
namespace {

constexpr size_t kMaxPooled = 2;

}  // namespace

std::string RemoteOutbox::Pool::Get() {
  absl::MutexLock lock(&mu_);
  std::string buffer;
  if (buffers_.empty()) {
    buffer.reserve(kMessageBytes + wire::kMaxPieceBody + 64);
  } else {
    buffer = std::move(buffers_.back());
    buffers_.pop_back();
  }
  return buffer;
}

void RemoteOutbox::Pool::Put(std::string buffer) {
  if (buffer.capacity() < kMessageBytes) return;
  buffer.clear();
  absl::MutexLock lock(&mu_);
  if (buffers_.size() < kMaxPooled) buffers_.push_back(std::move(buffer));
}

void RemoteOutbox::Append(const wire::FrameHeader& header, std::string_view message,
                          std::string_view payload) {
  absl::MutexLock lock(&mu_);
  size_t added = 0;
  const uint64_t frame_bytes = sizeof(header) + message.size() + payload.size();
  wire::CutFrame(
      header, message, payload, wire::kMaxPieceBody,
      [&](const wire::PieceHeader& piece, std::string_view a, std::string_view b,
          std::string_view c) {
        mu_.AssertHeld();  // For the compiler, which does not look through CutFrame.
        if (messages_.empty() || messages_.back().size() >= kMessageBytes) {
          messages_.push_back(frame_bytes > wire::kMaxPieceBody ? pool_->Get() : std::string());
        }
        std::string& out = messages_.back();
        out.append(reinterpret_cast<const char*>(&piece), sizeof(piece));
        out.append(a).append(b).append(c);
        const size_t padded = wire::PaddedPieceBytes(piece.body_bytes);
        out.append(padded - sizeof(piece) - piece.body_bytes, '\0');
        added += padded;
        return true;
      });
  bytes_.fetch_add(added, std::memory_order_seq_cst);
}

bool RemoteOutbox::Take(grpc::Slice* pieces) {
  auto loan = std::make_unique<Loan>();
  {
    absl::MutexLock lock(&mu_);
    if (writing_.load(std::memory_order_relaxed) || messages_.empty()) return false;
    loan->pieces = std::move(messages_.front());
    messages_.pop_front();
    bytes_.fetch_sub(loan->pieces.size(), std::memory_order_seq_cst);
    writing_.store(true, std::memory_order_seq_cst);
  }
  loan->pool = pool_;
  const auto give_back = [](void* taken) {
    const std::unique_ptr<Loan> loan(static_cast<Loan*>(taken));
    loan->pool->Put(std::move(loan->pieces));
  };
  Loan* const lent = loan.release();
  *pieces = grpc::Slice(lent->pieces.data(), lent->pieces.size(), give_back, lent);
  return true;
}

void RemoteOutbox::SetWriting() {
  absl::MutexLock lock(&mu_);
  writing_.store(true, std::memory_order_seq_cst);
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

}  // namespace sluice::client
