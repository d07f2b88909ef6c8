// SPDX-License-Identifier: Apache-2.0
// The consumer's end of a ring (ring_abi.h): copies each piece to private memory, then checks the
// copy. The producer is hostile: its cursor is read once per look, every length is checked before
// it is used, nothing in the ring is read twice. Thread-compatible: the owner serialises Next.
// Sleep and Interrupt may be called from other threads than Next.
#pragma once

#include <atomic>
#include <cstdint>

#include "absl/status/statusor.h"
#include "proto/frame.h"
#include "proto/ring_abi.h"

namespace sluice::wire {

class RingReader {
 public:
  // `memory` is a mapping of kRingFileBytes that outlives the reader. Of larger frames than
  // `max_frame_bytes` only the header is taken (frame.h).
  explicit RingReader(uint8_t* memory, uint64_t max_frame_bytes = kMaxFrameBytes);

  // Takes the next whole frame. False: none is there yet. An error is a violation; the ring is of
  // no use any more.
  absl::StatusOr<bool> Next(Frame* frame);

  bool HasPiece() const;  // Something is there that Next has not taken.
  // How much of it, as the producer has it: a hint, unchecked.
  uint64_t BytesWaiting() const;

  // Sleeps until the producer has a frame that `state` asks for, someone calls Interrupt, or the
  // timeout has passed. Returns at once if something is there. `bit` is kBitWaiter or
  // kBitBackground.
  void Sleep(RingSleep state, uint64_t awaited_event, uint32_t bit, int64_t timeout_ns);

  // Says for whom the bell rings from now on, without sleeping: for the thread that sleeps with
  // kBitBackground.
  void Arm(RingSleep state);

  // Wakes the threads that sleep with these bits; one that does not sleep yet returns from its next
  // Sleep at once.
  void Interrupt(uint32_t bits);

 private:
  RingShared* const shared_;
  const uint8_t* const data_;
  // Ours, as against the one in the ring, which the producer can overwrite. Written by Next only.
  std::atomic<uint64_t> consumed_ = 0;
  std::atomic<uint32_t> interrupts_ = 0;  // Bits whose sleeper has not noticed yet.
  FrameAssembler assembler_;
};

}  // namespace sluice::wire
