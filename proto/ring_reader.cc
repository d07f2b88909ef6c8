// SPDX-License-Identifier: Apache-2.0
#include "proto/ring_reader.h"

#include <climits>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "broker/os/doorbell.h"
#include "proto/status_macros.h"

namespace sluice::wire {

RingReader::RingReader(uint8_t* memory, uint64_t max_frame_bytes)
    : shared_(reinterpret_cast<RingShared*>(memory)),
      data_(memory + kRingDataOffset),
      assembler_(max_frame_bytes) {}

uint64_t RingReader::BytesWaiting() const {
  return shared_->produced.load(std::memory_order_acquire) -
         consumed_.load(std::memory_order_relaxed);
}

bool RingReader::HasPiece() const {
  return shared_->produced.load(std::memory_order_acquire) !=
         consumed_.load(std::memory_order_relaxed);
}

absl::StatusOr<bool> RingReader::Next(Frame* frame) {
  while (true) {
    const uint64_t produced_untrusted = shared_->produced.load(std::memory_order_acquire);
    const uint64_t consumed = consumed_.load(std::memory_order_relaxed);
    const uint64_t available = produced_untrusted - consumed;
    if (available == 0) return false;
    if (available > kRingCapacity || available % 8 != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("ring claims ", available, " bytes of ", kRingCapacity));
    }
    PieceHeader piece;  // Read once, then only the copy is used.
    std::memcpy(&piece, data_ + consumed % kRingCapacity, sizeof(piece));
    RETURN_IF_ERROR(assembler_.Begin(piece));
    const size_t padded = PaddedPieceBytes(piece.body_bytes);
    if (padded > available) {
      return absl::InvalidArgumentError(
          absl::StrCat("piece of ", padded, " bytes where ", available, " are there"));
    }
    const size_t at = (consumed + sizeof(piece)) % kRingCapacity;
    const size_t first =
        piece.body_bytes < kRingCapacity - at ? piece.body_bytes : kRingCapacity - at;
    assembler_.Append({reinterpret_cast<const char*>(data_) + at, first});
    assembler_.Append({reinterpret_cast<const char*>(data_), piece.body_bytes - first});
    consumed_.store(consumed + padded, std::memory_order_relaxed);
    // Pairs with the acquire in RingWriter::Room.
    shared_->consumed.store(consumed + padded, std::memory_order_seq_cst);
    // Not for each piece: a full ring would wake its producer to write one piece and sleep again.
    // Half of the ring takes any piece.
    if (available - padded <= kRingCapacity / 2 &&
        shared_->producer_waits.load(std::memory_order_seq_cst) != 0) {
      shared_->producer_waits.store(0, std::memory_order_relaxed);
      shared_->space_bell.fetch_add(1, std::memory_order_seq_cst);
      os::FutexWake(&shared_->space_bell, 1, ~0u);
    }
    bool complete = false;
    RETURN_IF_ERROR(assembler_.End(piece, frame, &complete));
    if (complete) return true;
  }
}

void RingReader::Sleep(RingSleep state, uint64_t awaited_event, uint32_t bit, int64_t timeout_ns) {
  const uint32_t seen = shared_->bell.load(std::memory_order_seq_cst);
  shared_->awaited_event.store(awaited_event, std::memory_order_relaxed);
  shared_->sleep_state.store(state, std::memory_order_seq_cst);
  // An Interrupt from before counts: its caller cannot know whether we sleep already.
  if ((interrupts_.fetch_and(~bit, std::memory_order_seq_cst) & bit) != 0) return;
  if (shared_->produced.load(std::memory_order_seq_cst) ==
      consumed_.load(std::memory_order_relaxed)) {
    os::FutexWait(&shared_->bell, seen, bit, timeout_ns);
  }
}

void RingReader::Arm(RingSleep state) {
  shared_->sleep_state.store(state, std::memory_order_seq_cst);
}

void RingReader::Interrupt(uint32_t bits) {
  interrupts_.fetch_or(bits, std::memory_order_seq_cst);
  shared_->bell.fetch_add(1, std::memory_order_seq_cst);
  os::FutexWake(&shared_->bell, INT_MAX, bits);
}

}  // namespace sluice::wire
