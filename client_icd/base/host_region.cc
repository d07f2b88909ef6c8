// SPDX-License-Identifier: Apache-2.0
#include "client_icd/base/host_region.h"

#include <algorithm>
#include <cstring>

namespace sluice::client {

HostRegion::HostRegion(void* base, size_t row_bytes, size_t rows, size_t slices, size_t row_pitch,
                       size_t slice_pitch)
    : base_(static_cast<uint8_t*>(base)),
      row_bytes_(row_bytes),
      rows_(rows),
      slices_(slices),
      row_pitch_(row_pitch),
      slice_pitch_(slice_pitch),
      contiguous_((rows == 1 || row_pitch == row_bytes) &&
                  (slices == 1 || slice_pitch == row_bytes * rows)) {}

size_t HostRegion::extent_bytes() const {
  if (row_bytes_ == 0 || rows_ == 0 || slices_ == 0) return 0;
  return (slices_ - 1) * slice_pitch_ + (rows_ - 1) * row_pitch_ + row_bytes_;
}

// Calls copy(host, bytes) for each piece of packed bytes [offset, offset + size) that lies in one
// row.
template <typename Copy>
void HostRegion::ForEachRun(uint64_t offset, uint64_t size, Copy&& copy) const {
  if (contiguous_) {
    copy(base_ + offset, size);
    return;
  }
  if (size == 0) return;  // Also where rows have no bytes.
  uint64_t row = offset / row_bytes_;
  uint64_t column = offset % row_bytes_;
  while (size != 0) {
    const uint64_t bytes = std::min<uint64_t>(size, row_bytes_ - column);
    copy(base_ + (row / rows_) * slice_pitch_ + (row % rows_) * row_pitch_ + column, bytes);
    size -= bytes;
    column = 0;
    ++row;
  }
}

void HostRegion::Gather(uint64_t offset, uint64_t size, uint8_t* to) const {
  ForEachRun(offset, size, [&to](const uint8_t* host, uint64_t bytes) {
    std::memcpy(to, host, bytes);
    to += bytes;
  });
}

void HostRegion::Scatter(uint64_t offset, uint64_t size, const uint8_t* from) const {
  ForEachRun(offset, size, [&from](uint8_t* host, uint64_t bytes) {
    std::memcpy(host, from, bytes);
    from += bytes;
  });
}

void HostRegion::Refresh(uint64_t offset, uint64_t size, const uint8_t* from) const {
  ForEachRun(offset, size, [&from](uint8_t* host, uint64_t bytes) {
    if (std::memcmp(host, from, bytes) != 0) std::memcpy(host, from, bytes);
    from += bytes;
  });
}

void HostRegion::CopyFrom(const HostRegion& source) const {
  if (contiguous_) return source.Gather(0, packed_bytes(), base_);
  if (source.contiguous_) return Scatter(0, packed_bytes(), source.base_);
  for (size_t z = 0; z < slices_; ++z) {
    for (size_t y = 0; y < rows_; ++y) {
      std::memcpy(base_ + z * slice_pitch_ + y * row_pitch_,
                  source.base_ + z * source.slice_pitch_ + y * source.row_pitch_, row_bytes_);
    }
  }
}

PendingDestinations::Range PendingDestinations::RangeOf(const HostRegion& region) {
  const uintptr_t begin = reinterpret_cast<uintptr_t>(region.base());
  return {begin, begin + region.extent_bytes()};
}

void PendingDestinations::Add(const HostRegion& region) {
  absl::MutexLock lock(&mu_);
  ranges_.push_back(RangeOf(region));
  count_.store(ranges_.size(), std::memory_order_release);
}

void PendingDestinations::Remove(const HostRegion& region) {
  const Range range = RangeOf(region);
  absl::MutexLock lock(&mu_);
  for (Range& one : ranges_) {
    if (one.begin != range.begin || one.end != range.end) continue;
    one = ranges_.back();
    ranges_.pop_back();
    break;
  }
  count_.store(ranges_.size(), std::memory_order_release);
}

bool PendingDestinations::Overlap(const HostRegion& source) const {
  if (count_.load(std::memory_order_acquire) == 0) return false;
  const Range range = RangeOf(source);
  absl::MutexLock lock(&mu_);
  for (const Range& one : ranges_) {
    if (range.begin < one.end && one.begin < range.end) return true;
  }
  return false;
}

}  // namespace sluice::client
