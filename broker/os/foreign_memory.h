// SPDX-License-Identifier: Apache-2.0
//
// Memory that an application or a peer made and gave us as a descriptor. Its kind decides how its
// bytes may be touched. An access to a mapping faults if another holder shrinks the memory: so only
// sealed memfds and dma-bufs are ever mapped. The bytes of anything else go through read and write
// calls, which fail instead.
//
// The descriptor is not trusted; it stays the caller's. No other holder of the memory can change
// afterwards what is found out here. All functions are thread-safe.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace sluice::os {

enum class ForeignMemoryKind {
  kSealed,    // A memfd that can neither shrink nor grow.
  kDmaBuf,    // Of fixed size by construction.
  kUnsealed,  // Another memfd or file in memory: not to be mapped.
};

struct ForeignMemory {
  ForeignMemoryKind kind = ForeignMemoryKind::kUnsealed;
  uint64_t size_bytes = 0;
  bool writable = false;  // Neither the descriptor nor a seal forbids it.

  bool mappable() const { return kind != ForeignMemoryKind::kUnsealed; }
};

// kInvalidArgument: it is no memory (a pipe, a file on a disk, huge pages that could run out).
absl::StatusOr<ForeignMemory> DescribeForeignMemory(int fd);

// OK if it may be memory of a device's own, which only a driver can open: a device's file or a
// dma-buf. Its driver says the rest. kInvalidArgument.
absl::Status CheckDeviceMemory(int fd);

// OK if [offset, offset + slices x slice_pitch) or, without slices, offset + rows x row_pitch (the
// last row may be short) lies in the memory; every step is checked for overflow.
struct MemoryLayout {
  uint64_t offset = 0;
  uint64_t row_bytes = 0;  // Of a buffer: all of it, with one row of one slice.
  uint64_t rows = 1;
  uint64_t slices = 1;
  uint64_t row_pitch = 0;    // 0: row_bytes.
  uint64_t slice_pitch = 0;  // 0: rows x row_pitch.
};
absl::Status CheckLayout(const MemoryLayout& layout, uint64_t size_bytes);

// Waits until other devices have finished with a dma-buf (writers, or with `writing` anybody).
// kDeadlineExceeded. Nothing to wait for in other memory.
absl::Status WaitForDevices(int fd, const ForeignMemory& memory, bool writing, absl::Time deadline);
// Around accesses through a mapping of a dma-buf; nothing in other memory.
absl::Status BeginAccess(int fd, const ForeignMemory& memory, bool writing);
absl::Status EndAccess(int fd, const ForeignMemory& memory, bool writing);

// All of [0, size) of memory that is not mapped. kOutOfRange: it has become smaller.
absl::Status ReadForeignMemory(int fd, uint8_t* to, uint64_t size);
absl::Status WriteForeignMemory(int fd, const uint8_t* from, uint64_t size);

}  // namespace sluice::os
