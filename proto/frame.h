// SPDX-License-Identifier: Apache-2.0
// One frame of the session's stream, the same bytes on the ring and on the network. A frame is
//
//     FrameHeader | message (an encoded Command or Reply) | payload
//
// and travels in one piece or several, each
//
//     PieceHeader | body, a part of the frame | zeros up to a multiple of 8
//
// Small data rides as the payload. Large data lies in the shared heap, at the header's bulk span;
// over the network the gateway moves it between span and payload, so that the message is the same
// bytes either way.
//
// Everything here is from the peer and hostile until FrameAssembler has checked a private copy.
// Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace sluice::wire {

inline constexpr uint32_t kPieceFirst = 1;
inline constexpr uint32_t kPieceLast = 2;

struct PieceHeader {
  uint32_t body_bytes;
  uint32_t flags;  // kPieceFirst | kPieceLast
};
static_assert(sizeof(PieceHeader) == 8);

inline constexpr size_t kMaxPieceBody = 64 * 1024;  // Fits into half of a ring (RingReader::Next).
// The largest frame: a program travels as one.
inline constexpr uint64_t kMaxFrameBytes = (uint64_t{1} << 31) - 1;
// Initial contents of a memory object up to this size travel with its creation.
inline constexpr uint64_t kMaxInitialPayloadBytes = uint64_t{1} << 20;

// Reads and writes of at most this many bytes carry their data as payload.
inline constexpr uint64_t kInlineTransferBytes = 32 * 1024;

// The place of a frame's bulk data.
struct BulkSpan {
  uint32_t segment = 0;  // 0: none. Segments are numbered from 1 by the worker.
  uint64_t offset = 0;
  uint64_t size = 0;
};

// Frame flags, set by the sender so that the gateway can tell without decoding the message.
inline constexpr uint32_t kFrameTransferChunk =
    1;  // Command: TransferChunk; over the network its bytes are the payload.
inline constexpr uint32_t kFrameGrant = 2;     // Reply: Grant with a bulk span.
inline constexpr uint32_t kFrameReadData = 4;  // Reply: ReadData; its bytes are at the bulk span.
inline constexpr uint32_t kFrameCreatesMemory =
    8;  // Reply: Answer with a MemoryPlacement in the heap.

struct FrameHeader {
  uint64_t sequence;  // Commands: 1, 2, 3, ...; replies: 0.
  uint32_t message_bytes;
  uint32_t flags;
  uint64_t payload_bytes;
  uint64_t bulk_offset;
  uint64_t bulk_bytes;
  uint32_t bulk_segment;
  uint32_t reserved;
};
static_assert(sizeof(FrameHeader) == 48);

// A frame in private memory.
class Frame {
 public:
  const FrameHeader& header() const { return header_; }
  std::string_view message() const {
    if (too_large_) return {};
    return {body_.data() + sizeof(FrameHeader), header_.message_bytes};
  }
  std::string_view payload() const {
    if (too_large_) return {};
    return {body_.data() + sizeof(FrameHeader) + header_.message_bytes, header_.payload_bytes};
  }
  BulkSpan bulk() const { return {header_.bulk_segment, header_.bulk_offset, header_.bulk_bytes}; }
  // It was larger than its receiver takes: only the header has been kept.
  bool too_large() const { return too_large_; }

 private:
  friend class FrameAssembler;
  std::string body_;
  FrameHeader header_ = {};
  bool too_large_ = false;
};

// Puts pieces together. `body_untrusted` must be private memory, or memory that only Append reads,
// once.
class FrameAssembler {
 public:
  // Of a frame of more than `max_bytes` only the header is kept, and the frame says so: the peer
  // gets an answer, and takes no more of our memory than this.
  explicit FrameAssembler(uint64_t max_bytes = kMaxFrameBytes) : max_bytes_(max_bytes) {}

  // An error is a violation of the protocol.
  absl::Status Begin(const PieceHeader& piece);
  void Append(std::string_view body_untrusted) {
    received_ += body_untrusted.size();
    const uint64_t most = too_large_ ? sizeof(FrameHeader) : max_bytes_;
    if (body_.size() < most) body_.append(body_untrusted.substr(0, most - body_.size()));
  }
  // Call after the piece's whole body has been appended. Sets *complete when *frame holds a checked
  // frame.
  absl::Status End(const PieceHeader& piece, Frame* frame, bool* complete);

  // All of `pieces` at once, for transports that deliver them in private memory: calls
  // `done(Frame&)` for each frame.
  template <typename Done>
  absl::Status Feed(std::string_view pieces, Done&& done);

 private:
  const uint64_t max_bytes_;
  std::string body_;
  uint64_t received_ = 0;  // Of the frame, kept or not.
  bool too_large_ = false;
  bool in_frame_ = false;
};

inline constexpr size_t PaddedPieceBytes(size_t body_bytes) {
  return sizeof(PieceHeader) + ((body_bytes + 7) & ~size_t{7});
}

// Checks a piece header that has been copied out of shared memory.
absl::Status CheckPieceHeader(const PieceHeader& piece);

// Cuts header, message and payload into pieces: calls emit(const PieceHeader&, std::string_view a,
// b, c) for each, whose parts together are the piece's body. Stops when emit returns false.
template <typename Emit>
bool CutFrame(const FrameHeader& header, std::string_view message, std::string_view payload,
              size_t max_body, Emit&& emit) {
  std::string_view parts[3] = {
      {reinterpret_cast<const char*>(&header), sizeof(header)}, message, payload};
  size_t left = parts[0].size() + parts[1].size() + parts[2].size();
  uint32_t flags = kPieceFirst;
  while (true) {
    const size_t body = left < max_body ? left : max_body;
    std::string_view taken[3];
    size_t room = body;
    for (int i = 0; i < 3; ++i) {
      taken[i] = parts[i].substr(0, room);
      parts[i].remove_prefix(taken[i].size());
      room -= taken[i].size();
    }
    left -= body;
    if (left == 0) flags |= kPieceLast;
    if (!emit(PieceHeader{static_cast<uint32_t>(body), flags}, taken[0], taken[1], taken[2]))
      return false;
    if (left == 0) return true;
    flags = 0;
  }
}

// Appends a whole frame, in pieces, to a string: what the network carries.
void AppendFrame(const FrameHeader& header, std::string_view message, std::string_view payload,
                 std::string* out);

template <typename Done>
absl::Status FrameAssembler::Feed(std::string_view pieces, Done&& done) {
  while (!pieces.empty()) {
    PieceHeader piece;
    if (pieces.size() < sizeof(piece)) return absl::InvalidArgumentError("piece header cut short");
    __builtin_memcpy(&piece, pieces.data(), sizeof(piece));
    if (absl::Status status = Begin(piece); !status.ok()) return status;
    const size_t padded = PaddedPieceBytes(piece.body_bytes);
    if (pieces.size() < padded) return absl::InvalidArgumentError("piece body cut short");
    Append(pieces.substr(sizeof(piece), piece.body_bytes));
    pieces.remove_prefix(padded);
    Frame frame;
    bool complete = false;
    if (absl::Status status = End(piece, &frame, &complete); !status.ok()) return status;
    if (complete) done(frame);
  }
  return absl::OkStatus();
}

}  // namespace sluice::wire
