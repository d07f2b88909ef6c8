// SPDX-License-Identifier: Apache-2.0
// The place of a transfer's bytes in the application's memory. On the wire they are tightly packed:
// rows, one after the other, of slices, one after the other. In the application's memory rows and
// slices are strided.
//
// HostRegion is a value; the memory it names is the application's and must stay until the
// transfer's event has ended (the specification asks that of the application). PendingDestinations
// is thread-safe and belongs to the Session.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace sluice::client {

class HostRegion {
 public:
  HostRegion() = default;
  // Linear memory.
  HostRegion(void* base, size_t bytes) : HostRegion(base, bytes, 1, 1, bytes, bytes) {}
  // `slices` of `rows` of `row_bytes`. The base is that of the first row that travels, origin
  // already added.
  HostRegion(void* base, size_t row_bytes, size_t rows, size_t slices, size_t row_pitch,
             size_t slice_pitch);
  // For sources, which are never written.
  static HostRegion Source(const void* base, size_t bytes) {
    return {const_cast<void*>(base), bytes};
  }
  static HostRegion Source(const void* base, size_t row_bytes, size_t rows, size_t slices,
                           size_t row_pitch, size_t slice_pitch) {
    return {const_cast<void*>(base), row_bytes, rows, slices, row_pitch, slice_pitch};
  }

  uint64_t packed_bytes() const { return uint64_t{row_bytes_} * rows_ * slices_; }
  bool contiguous() const { return contiguous_; }
  uint8_t* base() const { return base_; }
  // From base() to the end of the last row, gaps included.
  size_t extent_bytes() const;

  // Copies packed bytes [offset, offset + size) out of, or into, the application's memory. The
  // range must fit.
  void Gather(uint64_t offset, uint64_t size, uint8_t* to) const;
  void Scatter(uint64_t offset, uint64_t size, const uint8_t* from) const;
  // As Scatter, for memory that has most of the bytes already and may not be writable: writes no
  // row that is the same.
  void Refresh(uint64_t offset, uint64_t size, const uint8_t* from) const;
  // Copies a region of as many rows and slices of as many bytes.
  void CopyFrom(const HostRegion& source) const;

 private:
  template <typename Copy>
  void ForEachRun(uint64_t offset, uint64_t size, Copy&& copy) const;

  uint8_t* base_ = nullptr;
  size_t row_bytes_ = 0;
  size_t rows_ = 0;
  size_t slices_ = 0;
  size_t row_pitch_ = 0;
  size_t slice_pitch_ = 0;
  bool contiguous_ = true;
};

// The application's memory that pending reads and maps will still write: a write whose source
// overlaps it must not be copied early (../objects/README.md, "Data").
class PendingDestinations {
 public:
  void Add(const HostRegion& region);
  void Remove(const HostRegion& region);  // One that was added.
  bool Overlap(const HostRegion& source) const;

 private:
  struct Range {
    uintptr_t begin;
    uintptr_t end;
  };
  static Range RangeOf(const HostRegion& region);

  // The number of ranges, so that the usual question (none pending) takes no lock. Release under
  // mu_; pairs with the acquire in Overlap.
  std::atomic<size_t> count_{0};
  mutable absl::Mutex mu_;
  std::vector<Range> ranges_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sluice::client
