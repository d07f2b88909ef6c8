// SPDX-License-Identifier: Apache-2.0
#include "daemon/gateway/reply_ring.h"

#include <climits>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "broker/os/doorbell.h"
#include "proto/status_macros.h"

namespace sluice::gateway {

absl::StatusOr<bool> ReplyRing::Next(wire::PieceHeader* piece, std::string* body) {
  const uint64_t produced_untrusted = shared_->produced.load(std::memory_order_acquire);
  const uint64_t available = produced_untrusted - consumed_;
  if (available == 0) return false;
  if (available > wire::kRingCapacity || available % 8 != 0) {
    return absl::InternalError(
        absl::StrCat("reply ring claims ", available, " bytes of ", wire::kRingCapacity));
  }
  std::memcpy(piece, data_ + consumed_ % wire::kRingCapacity,
              sizeof(*piece));  // 8-aligned: never wraps.
  RETURN_IF_ERROR(wire::CheckPieceHeader(*piece));
  const size_t padded = wire::PaddedPieceBytes(piece->body_bytes);
  if (padded > available) {
    return absl::InternalError(
        absl::StrCat("reply piece of ", padded, " bytes where ", available, " are there"));
  }
  const size_t at = (consumed_ + sizeof(*piece)) % wire::kRingCapacity;
  const size_t first =
      piece->body_bytes < wire::kRingCapacity - at ? piece->body_bytes : wire::kRingCapacity - at;
  body->assign(reinterpret_cast<const char*>(data_) + at, first);
  body->append(reinterpret_cast<const char*>(data_), piece->body_bytes - first);
  consumed_ += padded;
  shared_->consumed.store(
      consumed_, std::memory_order_seq_cst);  // Pairs with the acquire in RingWriter::Room.
  if (shared_->producer_waits.load(std::memory_order_seq_cst) != 0) {
    shared_->producer_waits.store(0, std::memory_order_relaxed);
    shared_->space_bell.fetch_add(1, std::memory_order_seq_cst);
    os::FutexWake(&shared_->space_bell, 1, ~0u);
  }
  return true;
}

uint32_t ReplyRing::Arm() {
  const uint32_t ticket = shared_->bell.load(std::memory_order_seq_cst);
  shared_->awaited_event.store(0, std::memory_order_relaxed);
  // Before the look at `produced`; pairs with the producer's look at the state after it has
  // produced.
  shared_->sleep_state.store(wire::kSleepsForAny, std::memory_order_seq_cst);
  return ticket;
}

void ReplyRing::Wait(uint32_t ticket, int64_t timeout_ns) {
  if (shared_->produced.load(std::memory_order_seq_cst) != consumed_) return;
  os::FutexWait(&shared_->bell, ticket, wire::kBitWaiter, timeout_ns);
}

void ReplyRing::Disarm() { shared_->sleep_state.store(wire::kAwake, std::memory_order_relaxed); }

void ReplyRing::Wake() {
  shared_->bell.fetch_add(1, std::memory_order_seq_cst);
  os::FutexWake(&shared_->bell, INT_MAX, ~0u);
}

}  // namespace sluice::gateway
