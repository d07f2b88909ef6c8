// SPDX-License-Identifier: Apache-2.0
#include "proto/ring_writer.h"

#include <cstring>

#include "broker/os/doorbell.h"
#include "proto/spin.h"

namespace sluice::wire {

RingWriter::RingWriter(uint8_t* memory)
    : shared_(reinterpret_cast<RingShared*>(memory)), data_(memory + kRingDataOffset) {}

uint64_t RingWriter::Room() {
  const uint64_t consumed_untrusted = shared_->consumed.load(std::memory_order_acquire);
  if (consumed_untrusted > produced_ || produced_ - consumed_untrusted > kRingCapacity ||
      consumed_untrusted < consumed_seen_) {
    violated_ = true;
    return 0;
  }
  consumed_seen_ = consumed_untrusted;
  return kRingCapacity - (produced_ - consumed_seen_);
}

uint64_t RingWriter::used_bytes() { return kRingCapacity - Room(); }

void RingWriter::Put(uint64_t position, std::string_view bytes) {
  const size_t at = position % kRingCapacity;
  const size_t first = bytes.size() < kRingCapacity - at ? bytes.size() : kRingCapacity - at;
  std::memcpy(data_ + at, bytes.data(), first);
  if (first < bytes.size()) std::memcpy(data_, bytes.data() + first, bytes.size() - first);
}

bool RingWriter::TryWritePiece(const PieceHeader& piece, std::string_view a, std::string_view b,
                               std::string_view c) {
  const size_t padded = PaddedPieceBytes(piece.body_bytes);
  if (violated_) return false;
  if (kRingCapacity - (produced_ - consumed_seen_) < padded && Room() < padded) return false;
  uint64_t position = produced_;
  std::memcpy(data_ + position % kRingCapacity, &piece, sizeof(piece));  // 8-aligned: never wraps.
  position += sizeof(piece);
  for (const std::string_view part : {a, b, c}) {
    if (!part.empty()) Put(position, part);
    position += part.size();
  }
  produced_ += padded;
  shared_->produced.store(
      produced_, std::memory_order_seq_cst);  // Pairs with the acquire in RingReader::Next.
  return true;
}

void RingWriter::Notify(Wake wake, uint64_t event_id) {
  // Ordered after the store of `produced`, as the consumer stores its state before it looks at
  // `produced` again.
  const uint32_t state = shared_->sleep_state.load(std::memory_order_seq_cst);
  if (state == kAwake) return;
  bool ring = wake == Wake::kUrgent;
  switch (state) {
    case kSleepsLazily:
      ring = ring || used_bytes() > kRingCapacity / 4;
      break;
    case kSleepsForEvent:
      ring = ring || wake == Wake::kWaiter ||
             shared_->awaited_event.load(std::memory_order_relaxed) == event_id ||
             used_bytes() > kRingCapacity / 2;
      break;
    default:
      ring = true;
  }
  if (!ring) return;
  uint32_t expected = state;
  shared_->sleep_state.compare_exchange_strong(expected, kAwake);
  shared_->rung_ns.store(MonotonicNs(), std::memory_order_relaxed);
  shared_->bell.fetch_add(1, std::memory_order_seq_cst);
  const bool background = state == kSleepsLazily || state == kSleepsEagerly;
  os::FutexWake(&shared_->bell, 1, background ? kBitBackground : kBitWaiter);
}

void RingWriter::WaitForRoom(size_t body_bytes, int64_t timeout_ns) {
  const size_t padded = PaddedPieceBytes(body_bytes);
  const uint32_t seen = shared_->space_bell.load(std::memory_order_seq_cst);
  shared_->producer_waits.store(1, std::memory_order_seq_cst);
  // Only reads: other threads may be in Notify.
  const uint64_t consumed_untrusted = shared_->consumed.load(std::memory_order_seq_cst);
  if (produced_ - consumed_untrusted + padded > kRingCapacity)
    os::FutexWait(&shared_->space_bell, seen, ~0u, timeout_ns);
  shared_->producer_waits.store(0, std::memory_order_relaxed);
}

void RingWriter::WakeWriter() {
  shared_->space_bell.fetch_add(1, std::memory_order_seq_cst);
  os::FutexWake(&shared_->space_bell, 1, ~0u);
}

}  // namespace sluice::wire
