// SPDX-License-Identifier: Apache-2.0
//
// The consumer's end of a reply ring, piece by piece: the gateway passes frames on without putting
// them together, so that no session can make it hold more than one piece. As RingReader, it
// believes nothing: the producer's cursor is read once per look, a piece is copied out before it is
// looked at.
//
// Owner: a StreamSession's thread; Wake may be called by any.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "proto/frame.h"
#include "proto/ring_abi.h"

namespace sluice::gateway {

class ReplyRing {
 public:
  // `memory` is a mapping of kRingFileBytes that outlives this.
  explicit ReplyRing(uint8_t* memory)
      : shared_(reinterpret_cast<wire::RingShared*>(memory)),
        data_(memory + wire::kRingDataOffset) {}

  // Takes the next piece: its checked header, and its body in `*body`. False: none is there. An
  // error is a violation by the worker.
  absl::StatusOr<bool> Next(wire::PieceHeader* piece, std::string* body);
  bool HasPiece() const { return shared_->produced.load(std::memory_order_acquire) != consumed_; }

  // Sleeping: take a ticket, look at everything that would be a reason not to sleep, then Wait.
  uint32_t Arm();
  void Wait(uint32_t ticket, int64_t timeout_ns);
  void Disarm();
  void Wake();

 private:
  wire::RingShared* const shared_;
  const uint8_t* const data_;
  uint64_t consumed_ = 0;
};

}  // namespace sluice::gateway
