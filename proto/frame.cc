// SPDX-License-Identifier: Apache-2.0
#include "proto/frame.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "proto/status_macros.h"

namespace sluice::wire {
namespace {

// Memory that a frame has left behind is kept for the next one, up to this much.
constexpr size_t kKeptCapacity = 1 << 20;

}  // namespace

absl::Status CheckPieceHeader(const PieceHeader& piece) {
  if (piece.body_bytes > kMaxPieceBody) {
    return absl::InvalidArgumentError(
        absl::StrCat("piece of ", piece.body_bytes, " bytes exceeds ", kMaxPieceBody));
  }
  if ((piece.flags & ~(kPieceFirst | kPieceLast)) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("piece with unknown flags ", piece.flags));
  }
  return absl::OkStatus();
}

absl::Status FrameAssembler::Begin(const PieceHeader& piece) {
  RETURN_IF_ERROR(CheckPieceHeader(piece));
  const bool first = (piece.flags & kPieceFirst) != 0;
  if (first == in_frame_) {
    return absl::InvalidArgumentError(first ? "new frame inside a frame" : "piece outside a frame");
  }
  if (first) {
    received_ = 0;
    too_large_ = false;
    body_.clear();
    if (body_.capacity() > kKeptCapacity) body_.shrink_to_fit();
  }
  if (!too_large_ && received_ + piece.body_bytes > max_bytes_) {
    too_large_ = true;
    if (body_.size() > sizeof(FrameHeader)) body_.resize(sizeof(FrameHeader));
    body_.shrink_to_fit();
  }
  in_frame_ = true;
  return absl::OkStatus();
}

absl::Status FrameAssembler::End(const PieceHeader& piece, Frame* frame, bool* complete) {
  *complete = false;
  if ((piece.flags & kPieceLast) == 0) return absl::OkStatus();
  in_frame_ = false;
  FrameHeader header;
  if (body_.size() < sizeof(header)) {
    return absl::InvalidArgumentError(
        absl::StrCat("frame of ", body_.size(), " bytes has no header"));
  }
  std::memcpy(&header, body_.data(), sizeof(header));
  const uint64_t rest = received_ - sizeof(header);
  if (header.message_bytes > rest || header.payload_bytes != rest - header.message_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("message of ", header.message_bytes,
                                                   " and payload of ", header.payload_bytes,
                                                   " bytes do not fill a frame of ", rest));
  }
  std::swap(frame->body_, body_);
  frame->header_ = header;
  frame->too_large_ = too_large_;
  *complete = true;
  return absl::OkStatus();
}

void AppendFrame(const FrameHeader& header, std::string_view message, std::string_view payload,
                 std::string* out) {
  CutFrame(
      header, message, payload, kMaxPieceBody,
      [out](const PieceHeader& piece, std::string_view a, std::string_view b, std::string_view c) {
        out->append(reinterpret_cast<const char*>(&piece), sizeof(piece));
        out->append(a).append(b).append(c);
        out->append(PaddedPieceBytes(piece.body_bytes) - sizeof(piece) - piece.body_bytes, '\0');
        return true;
      });
}

}  // namespace sluice::wire
