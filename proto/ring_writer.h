// SPDX-License-Identifier: Apache-2.0
// The producer's end of a ring (ring_abi.h). Owned by whoever sends: the client's CommandStream,
// the worker's Replies, the gateway. Its cursor is its own; of the consumer it believes only that
// `consumed` lies within the capacity. Thread-compatible: the owner serialises writers.
#pragma once

#include <cstdint>
#include <string_view>

#include "proto/frame.h"
#include "proto/ring_abi.h"

namespace sluice::wire {

class RingWriter {
 public:
  // `memory` is a mapping of kRingFileBytes that outlives the writer.
  explicit RingWriter(uint8_t* memory);

  // Writes one piece if there is room for it. Visible to the consumer at once, but rings no bell.
  bool TryWritePiece(const PieceHeader& piece, std::string_view a, std::string_view b,
                     std::string_view c);

  // Wakes the consumer if it sleeps for such a frame. `event_id` is that of a completion, else 0.
  void Notify(Wake wake, uint64_t event_id);

  // Sleeps until there may be room for `body_bytes`, `interrupted` is set, or the timeout has
  // passed.
  void WaitForRoom(size_t body_bytes, int64_t timeout_ns);
  void WakeWriter();  // Ends a WaitForRoom, from another thread.

  // True once the consumer's cursor was impossible: the peer is broken or hostile, and nothing is
  // written any more.
  bool violated() const { return violated_; }
  uint64_t used_bytes();

 private:
  uint64_t Room();
  void Put(uint64_t position, std::string_view bytes);

  RingShared* const shared_;
  uint8_t* const data_;
  uint64_t produced_ = 0;
  uint64_t consumed_seen_ = 0;
  bool violated_ = false;
};

}  // namespace sluice::wire
