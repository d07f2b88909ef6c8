// SPDX-License-Identifier: Apache-2.0
// A ring's memory, and messages as gRPC delivers them, for the gateway's tests.
#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "broker/os/shared_memory.h"
#include "proto/command.pb.h"
#include "proto/frame.h"
#include "proto/network/message_reader.h"
#include "proto/ring_abi.h"

namespace sluice::gateway {

// Sealed shared memory and a mapping of it.
struct TestMemory {
  explicit TestMemory(size_t size)
      : file(*os::CreateSharedMemory("test", size)),
        mapping(*os::SharedMapping::Map(file.get(), size, /*writable=*/true)) {}

  os::UniqueFd Duplicate() const { return os::DuplicateFd(file.get()); }
  uint8_t* data() const { return mapping.data(); }

  os::UniqueFd file;
  os::SharedMapping mapping;
};

// `bytes` cut into slices of `slice_bytes`.
inline grpc::ByteBuffer Sliced(std::string_view bytes, size_t slice_bytes) {
  std::vector<grpc::Slice> slices;
  for (size_t at = 0; at < bytes.size(); at += slice_bytes) {
    const std::string_view part = bytes.substr(at, slice_bytes);
    slices.emplace_back(part.data(), part.size());
  }
  return grpc::ByteBuffer(slices.data(), slices.size());
}

inline std::string PiecesMessage(std::string_view pieces) {
  std::string message;
  wire::AppendStringField(wire::kPiecesField, pieces, &message);
  return message;
}

// The pieces of one frame.
inline std::string FrameBytes(std::string_view message, std::string_view payload,
                              uint32_t flags = 0, uint64_t sequence = 1) {
  wire::FrameHeader header = {};
  header.sequence = sequence;
  header.message_bytes = static_cast<uint32_t>(message.size());
  header.payload_bytes = payload.size();
  header.flags = flags;
  std::string out;
  wire::AppendFrame(header, message, payload, &out);
  return out;
}

inline std::string ChunkMessage(uint64_t event_id, uint64_t offset, uint64_t size) {
  v1::Command command;
  v1::TransferChunk& chunk = *command.mutable_transfer_chunk();
  chunk.set_event_id(event_id);
  chunk.set_offset(offset);
  chunk.set_size(size);
  return command.SerializeAsString();
}

// `size` bytes that differ from place to place.
inline std::string Pattern(size_t size, uint32_t seed = 1) {
  std::string bytes(size, '\0');
  uint32_t state = seed * 2654435761u + 1;
  for (char& byte : bytes) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<char>(state >> 24);
  }
  return bytes;
}

}  // namespace sluice::gateway
