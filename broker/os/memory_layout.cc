// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/str_cat.h"
#include "broker/os/foreign_memory.h"

namespace sluice::os {

absl::Status CheckLayout(const MemoryLayout& layout, uint64_t size_bytes) {
  const uint64_t row_pitch = layout.row_pitch != 0 ? layout.row_pitch : layout.row_bytes;
  uint64_t slice_bytes = 0;
  uint64_t slice_pitch = 0;
  uint64_t end = 0;
  const bool sane =
      layout.row_bytes != 0 && layout.rows != 0 && layout.slices != 0 &&
      row_pitch >= layout.row_bytes &&
      // A slice up to the end of its last row; slices up to the end of the last of them.
      !__builtin_mul_overflow(row_pitch, layout.rows, &slice_pitch) &&
      !__builtin_sub_overflow(slice_pitch, row_pitch - layout.row_bytes, &slice_bytes) &&
      (layout.slice_pitch == 0 || layout.slice_pitch >= slice_bytes) &&
      !__builtin_mul_overflow(layout.slice_pitch != 0 ? layout.slice_pitch : slice_pitch,
                              layout.slices - 1, &end) &&
      !__builtin_add_overflow(end, slice_bytes, &end) &&
      !__builtin_add_overflow(end, layout.offset, &end);
  if (!sane) return absl::InvalidArgumentError("a memory layout that cannot be");
  if (end > size_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a layout of ", end, " bytes in memory of ", size_bytes));
  }
  return absl::OkStatus();
}

}  // namespace sluice::os
