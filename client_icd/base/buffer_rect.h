// SPDX-License-Identifier: Apache-2.0
// The arithmetic of rectangles in linear memory (clEnqueue*BufferRect): pitches that were left out,
// bounds, overlap. All values are the application's, so no sum or product may wrap unseen.
// Thread-safe: no state.
#pragma once

#include <CL/cl.h>

#include <cstddef>
#include <cstdint>

#include "proto/commands/memory.pb.h"

namespace sluice::client {

namespace pb = v1;

struct PitchedRect {
  size_t row_pitch;  // In: as given, 0 for tightly packed.
  size_t slice_pitch;
  uint64_t begin = 0;  // Byte offset of the first byte.
  uint64_t end = 0;    // Past the last byte.
};

// Fills what is missing. False (CL_INVALID_VALUE, section 5.2.2) if an element of region is 0 or
// the row pitch is less than region[0]. Also if the slice pitch is less than region[1] rows or no
// multiple of the row pitch, or an offset does not fit 64 bits.
bool CompleteRect(const size_t* origin, const size_t* region, PitchedRect* rect);

// True if any byte belongs to both. `*_begin` are offsets in the same memory.
bool RectsOverlap(const PitchedRect& a, uint64_t a_begin, const PitchedRect& b, uint64_t b_begin,
                  const size_t* region);

void EncodeRect(const size_t* origin, const size_t* region, const PitchedRect& rect,
                pb::BufferRect* out);

}  // namespace sluice::client
