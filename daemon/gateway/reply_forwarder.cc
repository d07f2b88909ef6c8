// SPDX-License-Identifier: Apache-2.0
#include "daemon/gateway/reply_forwarder.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/command.pb.h"
#include "proto/heap_span.h"
#include "proto/network/message_reader.h"
#include "proto/status_macros.h"

namespace sluice::gateway {
namespace {

// Below this, copying costs less than a slice of its own.
constexpr size_t kWorthReferring = 4096;
// Of what a worker says about its end, for one line of the log.
constexpr size_t kMostLastWords = 1024;
// The first byte of a Reply that is a SessionEnded: the field's number, and that it is a message.
constexpr char kSessionEndedTag = v1::Reply::kSessionEndedFieldNumber << 3 | 2;

grpc::Slice SliceOwning(std::string bytes) {
  auto* owned = new std::string(std::move(bytes));
  return grpc::Slice(
      owned->data(), owned->size(), [](void* string) { delete static_cast<std::string*>(string); },
      owned);
}

}  // namespace

void OutgoingPieces::Add(const wire::PieceHeader& piece, std::string_view a, std::string_view b,
                         std::string_view c) {
  copied_.append(reinterpret_cast<const char*>(&piece), sizeof(piece));
  copied_.append(a).append(b).append(c);
  copied_.append(wire::PaddedPieceBytes(piece.body_bytes) - sizeof(piece) - piece.body_bytes, '\0');
  bytes_ += wire::PaddedPieceBytes(piece.body_bytes);
}

void OutgoingPieces::AddWithSpan(const wire::PieceHeader& piece, std::string_view a,
                                 std::string_view b, const uint8_t* span, size_t bytes,
                                 const std::shared_ptr<const os::SharedMapping>& mapping) {
  if (bytes < kWorthReferring)
    return Add(piece, a, b, {reinterpret_cast<const char*>(span), bytes});
  copied_.append(reinterpret_cast<const char*>(&piece), sizeof(piece));
  copied_.append(a).append(b);
  Cut();
  using Holder = std::shared_ptr<const os::SharedMapping>;
  slices_.emplace_back(
      const_cast<uint8_t*>(span), bytes, [](void* holder) { delete static_cast<Holder*>(holder); },
      new Holder(mapping));
  copied_.append(wire::PaddedPieceBytes(piece.body_bytes) - sizeof(piece) - piece.body_bytes, '\0');
  bytes_ += wire::PaddedPieceBytes(piece.body_bytes);
}

void OutgoingPieces::Cut() {
  if (copied_.empty()) return;
  slices_.push_back(SliceOwning(std::move(copied_)));
  copied_.clear();
}

grpc::ByteBuffer OutgoingPieces::Take() {
  Cut();
  std::string start;
  wire::AppendFieldHeader(wire::kPiecesField, bytes_, &start);
  slices_.insert(slices_.begin(), grpc::Slice(start.data(), start.size()));
  grpc::ByteBuffer message(slices_.data(), slices_.size());
  slices_.clear();
  bytes_ = 0;
  return message;
}

absl::Status ReplyForwarder::Forward(const wire::PieceHeader& piece, std::string* body) {
  const bool first = (piece.flags & wire::kPieceFirst) != 0;
  const bool last = (piece.flags & wire::kPieceLast) != 0;
  if (first == in_frame_) return absl::InternalError("the worker's pieces make no frames");
  in_frame_ = !last;
  if (first) {
    wire::FrameHeader header;
    if (body->size() < sizeof(header))
      return absl::InternalError("the worker's first piece has no frame header");
    std::memcpy(&header, body->data(), sizeof(header));
    const std::string_view message = std::string_view(*body).substr(sizeof(header));
    if ((header.flags & (wire::kFrameReadData | wire::kFrameGrant)) != 0) {
      // Three numbers: such a frame is never cut.
      if (!last || header.message_bytes != message.size()) {
        return absl::InternalError("the worker's grant or read data is no single piece");
      }
      if ((header.flags & wire::kFrameReadData) != 0) return ForwardReadData(header, message);
      RETURN_IF_ERROR(RememberGrant(header, message));
    }
    if (last) NoteEnd(message);
    header.bulk_segment = 0;  // Means nothing beyond this machine.
    header.bulk_offset = header.bulk_bytes = 0;
    std::memcpy(body->data(), &header, sizeof(header));
  }
  collected_.Add(piece, *body, {}, {});
  return SendIfFull();
}

absl::Status ReplyForwarder::SendIfFull() {
  return !collected_.full() || send_(&collected_) ? absl::OkStatus()
                                                  : absl::CancelledError("the session is over");
}

void ReplyForwarder::NoteEnd(std::string_view message) {
  if (message.empty() || message[0] != kSessionEndedTag || message.size() > kMostLastWords) return;
  v1::Reply reply;
  if (reply.ParseFromArray(message.data(), static_cast<int>(message.size())))
    last_words_ = reply.session_ended().reason();
}

absl::Status ReplyForwarder::RememberGrant(const wire::FrameHeader& header,
                                           std::string_view message) {
  v1::Reply reply;
  if (!reply.ParseFromArray(message.data(), static_cast<int>(message.size())) ||
      !reply.has_grant()) {
    return absl::InternalError("the worker marked a frame as a grant that is none");
  }
  const v1::Grant& grant = reply.grant();
  const wire::BulkSpan span = {header.bulk_segment, header.bulk_offset, header.bulk_bytes};
  MappedSpan mapped = heap_->Resolve(span);
  if (mapped.data == nullptr || span.size < grant.size()) {
    return absl::InternalError(
        absl::StrCat("the worker granted ", grant.size(), " bytes outside its heap"));
  }
  grants_->Add(grant.event_id(), grant.offset(), grant.size(), span, std::move(mapped));
  return absl::OkStatus();
}

absl::Status ReplyForwarder::ForwardReadData(const wire::FrameHeader& read_header,
                                             std::string_view message) {
  v1::Reply reply;
  if (!reply.ParseFromArray(message.data(), static_cast<int>(message.size())) ||
      !reply.has_read_data()) {
    return absl::InternalError("the worker marked a frame as read data that is none");
  }
  v1::ReadData& part = *reply.mutable_read_data();
  const uint64_t offset = part.offset();
  const uint64_t size = part.size();
  const wire::BulkSpan span = {read_header.bulk_segment, read_header.bulk_offset,
                               read_header.bulk_bytes};
  const MappedSpan mapped = heap_->Resolve(span);
  if (mapped.data == nullptr || span.size < size) {
    return absl::InternalError(
        absl::StrCat("the worker sent ", size, " bytes from outside its heap"));
  }
  for (uint64_t done = 0; done < size;) {
    const uint64_t bytes = std::min<uint64_t>(kNetworkMessageBytes, size - done);
    part.set_offset(offset + done);
    part.set_size(bytes);
    wire::FrameHeader header = {};
    header.flags = wire::kFrameReadData;
    const std::string encoded = reply.SerializeAsString();
    header.message_bytes = static_cast<uint32_t>(encoded.size());
    header.payload_bytes = bytes;
    const std::string_view payload(reinterpret_cast<const char*>(mapped.data) + done, bytes);
    wire::CutFrame(header, encoded, payload, wire::kMaxPieceBody,
                   [&](const wire::PieceHeader& piece, std::string_view a, std::string_view b,
                       std::string_view c) {
                     collected_.AddWithSpan(piece, a, b, reinterpret_cast<const uint8_t*>(c.data()),
                                            c.size(), mapped.mapping);
                     return true;
                   });
    done += bytes;
    RETURN_IF_ERROR(SendIfFull());
  }
  return absl::OkStatus();
}

}  // namespace sluice::gateway
