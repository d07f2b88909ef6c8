// SPDX-License-Identifier: Apache-2.0
#include "client_icd/buffer_rect.h"

#include <algorithm>

#include "proto/codec.h"

namespace sluice {
namespace {

// sum += a * b; false if it does not fit.
bool AddProduct(uint64_t a, uint64_t b, uint64_t* sum) {
  uint64_t product = 0;
  return !__builtin_mul_overflow(a, b, &product) && !__builtin_add_overflow(*sum, product, sum);
}

}  // namespace

bool CompleteRect(const size_t* origin, const size_t* region, PitchedRect* rect) {
  if (region[0] == 0 || region[1] == 0 || region[2] == 0) return false;
  if (rect->row_pitch == 0) rect->row_pitch = region[0];
  if (rect->row_pitch < region[0]) return false;
  uint64_t plane = 0;
  if (!AddProduct(region[1], rect->row_pitch, &plane)) return false;
  if (rect->slice_pitch == 0) rect->slice_pitch = plane;
  if (rect->slice_pitch < plane || rect->slice_pitch % rect->row_pitch != 0) return false;
  rect->begin = origin[0];
  if (!AddProduct(origin[1], rect->row_pitch, &rect->begin)) return false;
  if (!AddProduct(origin[2], rect->slice_pitch, &rect->begin)) return false;
  rect->end = rect->begin;
  return AddProduct(region[2] - 1, rect->slice_pitch, &rect->end) &&
         AddProduct(region[1] - 1, rect->row_pitch, &rect->end) &&
         AddProduct(region[0], 1, &rect->end);
}

bool RectsOverlap(const PitchedRect& a, uint64_t a_begin, const PitchedRect& b, uint64_t b_begin,
                  const size_t* region) {
  const uint64_t a_end = a_begin + (a.end - a.begin);
  const uint64_t b_end = b_begin + (b.end - b.begin);
  if (a_end <= b_begin || b_end <= a_begin) return false;
  // With unlike pitches (of two sub-buffers) row by row is the only exact way; what may touch
  // counts as overlapping.
  if (a.row_pitch != b.row_pitch || a.slice_pitch != b.slice_pitch) return true;
  // Bytes of both rectangles are slice * slice_pitch + row * row_pitch + column from their begins.
  // They meet if the distance of the begins is such a sum of differences; each difference can be
  // taken two ways round.
  const uint64_t distance = std::max(a_begin, b_begin) - std::min(a_begin, b_begin);
  const uint64_t column = distance % a.row_pitch;
  const uint64_t rows_per_slice = a.slice_pitch / a.row_pitch;
  for (const bool column_back : {false, true}) {
    if (column_back ? a.row_pitch - column >= region[0] : column >= region[0]) continue;
    const uint64_t rows = distance / a.row_pitch + (column_back ? 1 : 0);
    const uint64_t row = rows % rows_per_slice;
    for (const bool row_back : {false, true}) {
      if (row_back ? rows_per_slice - row >= region[1] : row >= region[1]) continue;
      if (rows / rows_per_slice + (row_back ? 1 : 0) < region[2]) return true;
    }
  }
  return false;
}

void EncodeRect(const size_t* origin, const size_t* region, const PitchedRect& rect,
                pb::BufferRect* out) {
  EncodeSize3(origin, out->mutable_origin());
  EncodeSize3(region, out->mutable_region());
  out->set_row_pitch(rect.row_pitch);
  out->set_slice_pitch(rect.slice_pitch);
}

}  // namespace sluice
