// SPDX-License-Identifier: Apache-2.0
//
// Reads a ClientMessage or ServerMessage (proto/control.proto) where gRPC has put it: in slices,
// which a protobuf parse would copy once more. Bulk data is most of what a session carries, so its
// bytes go from the socket's buffers to their place in one copy. Also builds the few bytes around
// what is sent.
//
// Used by the gateway and by the client's network transport. Thread-compatible. The bytes are the
// peer's: every length is checked against what is there.
#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::wire {

// Field numbers of both messages, and of the others that are read without protobuf.
inline constexpr uint32_t kOpenField = 1;  // ClientMessage.open, ServerMessage.opened
inline constexpr uint32_t kPiecesField = 2;
inline constexpr uint32_t kMaxInFlightField = 3;  // SessionOpened.max_in_flight_commands

class MessageReader {
 public:
  enum class Step { kField, kEnd, kMalformed };

  // Takes a reference to the message's slices. False if gRPC cannot give them.
  bool Reset(const grpc::ByteBuffer& message);

  // Goes to the next length-delimited field; what is left of the present one, and fields of other
  // kinds, are skipped. After kField, the calls below read that field.
  Step NextField(uint32_t* number);

  uint64_t left() const { return field_left_; }  // Bytes of the field not yet read.

  // All of them read from the field; false, and nothing is taken, if it has not as many bytes.
  bool Peek(void* out, size_t bytes) const;
  bool Skip(uint64_t bytes);
  bool Read(void* out, size_t bytes);
  // The next bytes in one piece: where they lie, or else copied to `scratch`. Valid until the
  // reader is reset. Null if there are not as many. Takes nothing: Skip follows.
  const char* Contiguous(size_t bytes, std::string* scratch) const;
  // Calls `take(const char*, size_t)` with the next bytes, part by part.
  template <typename Take>
  bool ForEachPart(uint64_t bytes, Take&& take);
  // The rest of the field.
  std::string Rest();

 private:
  bool ReadVarint(uint64_t* value);
  void Advance(uint64_t bytes);  // Within the message.
  void CopyOut(char* out, size_t bytes) const;

  std::vector<grpc::Slice> slices_;
  size_t slice_ = 0;           // The one that is read.
  size_t at_ = 0;              // Its first byte not yet read.
  uint64_t message_left_ = 0;  // Of the message, the field's included.
  uint64_t field_left_ = 0;
};

template <typename Take>
bool MessageReader::ForEachPart(uint64_t bytes, Take&& take) {
  if (bytes > field_left_) return false;
  while (bytes > 0) {
    const grpc::Slice& slice = slices_[slice_];
    const uint64_t there = slice.size() - at_;
    const size_t part = static_cast<size_t>(there < bytes ? there : bytes);
    if (part > 0) take(reinterpret_cast<const char*>(slice.begin()) + at_, part);
    field_left_ -= part;
    Advance(part);
    bytes -= part;
  }
  return true;
}

// The value of a varint field of a whole message, 0 if it is not there. False if it is malformed.
bool FindVarintField(std::string_view message, uint32_t number, uint64_t* value);

void AppendVarint(uint64_t value, std::string* out);
// The tag and length of a length-delimited field whose content follows.
void AppendFieldHeader(uint32_t number, uint64_t bytes, std::string* out);
void AppendStringField(uint32_t number, std::string_view value, std::string* out);

}  // namespace sluice::wire
