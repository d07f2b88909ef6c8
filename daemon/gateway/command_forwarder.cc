// SPDX-License-Identifier: Apache-2.0
#include "daemon/gateway/command_forwarder.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "proto/command.pb.h"
#include "proto/status_macros.h"

namespace sluice::gateway {
namespace {

// A TransferChunk has three numbers in it.
constexpr uint32_t kMaxChunkMessageBytes = 256;

}  // namespace

absl::StatusOr<CommandForwarder::Outcome> CommandForwarder::Forward(wire::MessageReader* reader) {
  if (chunk_waits_) {
    ASSIGN_OR_RETURN(const bool sent, SendChunkFrame());
    if (!sent) return Outcome::kRingFull;
  }
  while (reader->left() > 0) {
    ASSIGN_OR_RETURN(const bool forwarded, ForwardPiece(reader));
    if (!forwarded) return Outcome::kRingFull;
  }
  return Outcome::kDone;
}

absl::StatusOr<bool> CommandForwarder::Put(const wire::PieceHeader& piece, std::string_view a,
                                           std::string_view b) {
  if (writer_.TryWritePiece(piece, a, b, {})) return true;
  if (writer_.violated())
    return absl::InternalError("the worker's place in the command ring is impossible");
  wanted_bytes_ = piece.body_bytes;
  return false;
}

absl::StatusOr<bool> CommandForwarder::ForwardPiece(wire::MessageReader* reader) {
  wire::PieceHeader piece;
  if (!reader->Peek(&piece, sizeof(piece)))
    return absl::InvalidArgumentError("piece header cut short");
  RETURN_IF_ERROR(wire::CheckPieceHeader(piece));
  const bool first = (piece.flags & wire::kPieceFirst) != 0;
  if (first == in_frame_) {
    return absl::InvalidArgumentError(first ? "new frame inside a frame" : "piece outside a frame");
  }
  const size_t padded = wire::PaddedPieceBytes(piece.body_bytes);
  if (padded > reader->left()) {
    return absl::InvalidArgumentError(
        absl::StrCat("piece of ", padded, " bytes where ", reader->left(), " are left"));
  }
  if (first) {
    char start[sizeof(piece) + sizeof(wire::FrameHeader)];
    if (piece.body_bytes < sizeof(wire::FrameHeader) || !reader->Peek(start, sizeof(start))) {
      return absl::InvalidArgumentError("first piece without a whole frame header");
    }
    wire::FrameHeader header;
    std::memcpy(&header, start + sizeof(piece), sizeof(header));
    chunk_ = {};
    chunk_.active = (header.flags & wire::kFrameTransferChunk) != 0;
    chunk_.header = header;
  }
  if (chunk_.active) {
    reader->Skip(sizeof(piece) + (first ? sizeof(wire::FrameHeader) : 0));
    RETURN_IF_ERROR(TakeChunkPiece(piece, reader));
    reader->Skip(padded - sizeof(piece) - piece.body_bytes);
  } else {
    const char* bytes = reader->Contiguous(sizeof(piece) + piece.body_bytes, &scratch_);
    ASSIGN_OR_RETURN(const bool put, Put(piece, {bytes + sizeof(piece), piece.body_bytes}, {}));
    if (!put) return false;
    reader->Skip(padded);
  }
  in_frame_ = (piece.flags & wire::kPieceLast) == 0;
  if (!chunk_.active || in_frame_) return true;
  return SendChunkFrame();
}

absl::Status CommandForwarder::TakeChunkPiece(const wire::PieceHeader& piece,
                                              wire::MessageReader* reader) {
  const wire::FrameHeader& header = chunk_.header;
  uint64_t body = piece.body_bytes;
  if ((piece.flags & wire::kPieceFirst) != 0) {
    body -= sizeof(header);
    if (header.message_bytes > kMaxChunkMessageBytes ||
        header.payload_bytes > wire::kMaxFrameBytes) {
      return absl::InvalidArgumentError(absl::StrCat("transfer chunk with a message of ",
                                                     header.message_bytes, " and a payload of ",
                                                     header.payload_bytes, " bytes"));
    }
  }
  const uint64_t of_message =
      std::min<uint64_t>(body, header.message_bytes - chunk_.message.size());
  reader->ForEachPart(
      of_message, [this](const char* part, size_t bytes) { chunk_.message.append(part, bytes); });
  body -= of_message;
  if (!chunk_.located && chunk_.message.size() == header.message_bytes)
    RETURN_IF_ERROR(LocateChunk());
  if (body > header.payload_bytes - chunk_.payload_done) {
    return absl::InvalidArgumentError("transfer chunk with more bytes than its header says");
  }
  reader->ForEachPart(body, [this](const char* part, size_t bytes) {
    if (chunk_.destination.data != nullptr) {
      std::memcpy(chunk_.destination.data + chunk_.payload_done, part, bytes);
    }
    chunk_.payload_done += bytes;
  });
  const bool whole = chunk_.located && chunk_.payload_done == header.payload_bytes;
  if ((piece.flags & wire::kPieceLast) != 0 && !whole) {
    return absl::InvalidArgumentError("transfer chunk with fewer bytes than its header says");
  }
  return absl::OkStatus();
}

absl::Status CommandForwarder::LocateChunk() {
  v1::Command command;
  if (!command.ParseFromString(chunk_.message) || !command.has_transfer_chunk()) {
    return absl::InvalidArgumentError("frame marked as a transfer chunk that is none");
  }
  const v1::TransferChunk& chunk = command.transfer_chunk();
  if (chunk.size() != chunk_.header.payload_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("transfer chunk of ", chunk.size(), " with ",
                                                   chunk_.header.payload_bytes, " bytes"));
  }
  // No grant: the transfer has failed meanwhile, which the client cannot know. The worker judges
  // the frame.
  chunk_.destination = grants_->Find(chunk.event_id(), chunk.offset(), chunk.size(), &chunk_.span);
  chunk_.event_id = chunk.event_id();
  chunk_.offset = chunk.offset();
  chunk_.located = true;
  return absl::OkStatus();
}

absl::StatusOr<bool> CommandForwarder::SendChunkFrame() {
  wire::FrameHeader header = chunk_.header;
  header.payload_bytes = 0;
  header.bulk_segment = chunk_.span.segment;
  header.bulk_offset = chunk_.span.offset;
  header.bulk_bytes = chunk_.span.size;
  const wire::PieceHeader piece = {static_cast<uint32_t>(sizeof(header) + chunk_.message.size()),
                                   wire::kPieceFirst | wire::kPieceLast};
  const std::string_view start(reinterpret_cast<const char*>(&header), sizeof(header));
  ASSIGN_OR_RETURN(const bool put, Put(piece, start, chunk_.message));
  chunk_waits_ = !put;
  if (!put) return false;
  grants_->Used(chunk_.event_id, chunk_.offset, chunk_.header.payload_bytes);
  chunk_ = {};
  return true;
}

}  // namespace sluice::gateway
