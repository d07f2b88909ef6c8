// SPDX-License-Identifier: Apache-2.0
//
// Memory that two processes map. The maker creates it with a fixed size and seals it; the receiver
// verifies the seals and the size before it maps, so that the peer can never make an access fault
// by shrinking it. The bytes are not trusted: the ring and the heap check them.
//
// Mappings are not inherited by fork: a child of an application never sees its parent's session.
// All functions are thread-safe; SharedMapping is thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/os/scoped_handle.h"

namespace sluice::os {

// kMore: seals can be added later.
enum class Sealing { kFinal, kMore };

// Zero-filled, close-on-exec, sealed against shrinking, growing and (kFinal) further sealing.
absl::StatusOr<UniqueFd> CreateSharedMemory(const char* name, size_t size_bytes,
                                            Sealing sealing = Sealing::kFinal);

// OK if `fd` carries those seals and has exactly `expected_size_bytes`.
absl::Status VerifySharedMemory(int fd, size_t expected_size_bytes);

// A copy of `data` that nobody can change any more, the maker included. `size_bytes` may be 0.
absl::StatusOr<UniqueFd> CreateSealedCopy(const char* name, const void* data, size_t size_bytes);

// The bytes of a sealed copy of at most `max_bytes`; refuses a descriptor that could still change.
absl::StatusOr<std::string> ReadSealedCopy(int fd, size_t max_bytes);

// Makes `size` bytes at `offset` of the memory, mapped writable at `data`, zero; gives large pages
// back to the system.
void ZeroSharedMemory(int fd, uint8_t* data, uint64_t offset, uint64_t size);

class SharedMapping {
 public:
  SharedMapping() = default;
  SharedMapping(SharedMapping&& other) noexcept;
  SharedMapping& operator=(SharedMapping&& other) noexcept;
  SharedMapping(const SharedMapping&) = delete;
  SharedMapping& operator=(const SharedMapping&) = delete;
  ~SharedMapping();

  // Maps `size` bytes from offset 0. With `fixed_address` exactly there, or an error: nothing that
  // is mapped already is ever replaced. Call VerifySharedMemory first for a descriptor from a peer.
  static absl::StatusOr<SharedMapping> Map(int fd, size_t size, bool writable,
                                           void* fixed_address = nullptr);

  uint8_t* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  SharedMapping(uint8_t* data, size_t size) : data_(data), size_(size) {}

  uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

// Memory that its maker alone can write, now and later: `reader` can be mapped for reading only,
// also by another process. Zero-filled. kUnimplemented where the system has no such memory.
struct OwnersMemory {
  UniqueFd reader;
  SharedMapping mapping;
};
absl::StatusOr<OwnersMemory> CreateOwnersMemory(const char* name, size_t size_bytes);

}  // namespace sluice::os
