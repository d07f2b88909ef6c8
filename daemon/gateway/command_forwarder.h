// SPDX-License-Identifier: Apache-2.0
//
// The way in: pieces from a network client into the worker's command ring. They pass as they are;
// only a TransferChunk is looked into: its bytes go to the span that the worker granted, and the
// frame goes on without them.
//
//   ClientMessage.pieces -> piece -> ring
//                           TransferChunk: payload -> heap span; header, message -> ring
//
// Owner: a StreamSession, which calls it from one thread at a time. Nothing here blocks: when the
// ring is full the rest of the message stays in the reader, and Forward is called again once there
// is room. Nothing that a client sends can do more than end its own session.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "daemon/gateway/grant_table.h"
#include "proto/frame.h"
#include "proto/network/message_reader.h"
#include "proto/ring_writer.h"

namespace sluice::gateway {

class CommandForwarder {
 public:
  enum class Outcome { kDone, kRingFull };

  // `ring` is the mapping of the command ring.
  CommandForwarder(uint8_t* ring, GrantTable* grants) : writer_(ring), grants_(grants) {}

  // Forwards what is left of the reader's field. An error is a violation by the client, or a broken
  // ring.
  absl::StatusOr<Outcome> Forward(wire::MessageReader* reader);

  // After kRingFull: sleeps until there may be room, WakeWriter is called, or the timeout has
  // passed.
  void WaitForRoom(int64_t timeout_ns) { writer_.WaitForRoom(wanted_bytes_, timeout_ns); }
  void WakeWriter() { writer_.WakeWriter(); }
  // Tells the worker that something is there.
  void Notify() { writer_.Notify(wire::Wake::kWaiter, 0); }

 private:
  // A TransferChunk of which not all pieces have come.
  struct Chunk {
    bool active = false;
    bool located = false;  // The message is whole, and `destination` is its place.
    wire::FrameHeader header = {};
    std::string message;
    uint64_t event_id = 0;
    uint64_t offset = 0;
    uint64_t payload_done = 0;
    MappedSpan destination;  // Null: no such grant; the bytes go nowhere.
    wire::BulkSpan span;
  };

  absl::StatusOr<bool> ForwardPiece(wire::MessageReader* reader);  // False: the ring is full.
  absl::Status TakeChunkPiece(const wire::PieceHeader& piece, wire::MessageReader* reader);
  absl::Status LocateChunk();
  absl::StatusOr<bool> SendChunkFrame();
  absl::StatusOr<bool> Put(const wire::PieceHeader& piece, std::string_view a, std::string_view b);

  wire::RingWriter writer_;
  GrantTable* const grants_;
  bool in_frame_ = false;
  Chunk chunk_;
  bool chunk_waits_ = false;  // The chunk is whole but its frame has found no room yet.
  size_t wanted_bytes_ = 0;
  std::string scratch_;
};

}  // namespace sluice::gateway
