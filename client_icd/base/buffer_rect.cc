// SPDX-License-Identifier: Apache-2.0
#include "client_icd/base/buffer_rect.h"

#include <algorithm>

#include "proto/codec.h"

namespace sluice::client {
namespace {

// sum += a * b; false if it does not fit.
bool AddProduct(uint64_t a, uint64_t b, uint64_t* sum) {
  uint64_t product = 0;
  return !__builtin_mul_overflow(a, b, &product) && !__builtin_add_overflow(*sum, product, sum);
}

// The first row, as an offset in the memory in which the rectangle begins at `begin`, that has a
// byte at or past `from`. False if there is none.
bool FindRow(const PitchedRect& rect, uint64_t begin, const size_t* region, uint64_t from,
             uint64_t* out) {
  const uint64_t distance = from - std::min(from, begin);
  uint64_t slice = distance / rect.slice_pitch;
  uint64_t row = distance % rect.slice_pitch / rect.row_pitch;
  if (distance % rect.row_pitch >= region[0]) ++row;
  if (row >= region[1]) {
    row = 0;
    ++slice;
  }
  *out = begin + slice * rect.slice_pitch + row * rect.row_pitch;
  return slice < region[2];
}

// Of rectangles with unlike pitches (in two sub-buffers): looks at their rows in turn. As many
// steps as rows at most, of which the copy has more work.
bool RowsMeet(const PitchedRect& a, uint64_t a_begin, const PitchedRect& b, uint64_t b_begin,
              const size_t* region) {
  uint64_t in_a = a_begin;
  uint64_t in_b = 0;
  while (FindRow(b, b_begin, region, in_a, &in_b)) {
    if (in_b < in_a + region[0]) return true;
    if (!FindRow(a, a_begin, region, in_b, &in_a)) return false;
    if (in_a < in_b + region[0]) return true;
  }
  return false;
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
  if (a.row_pitch != b.row_pitch || a.slice_pitch != b.slice_pitch)
    return RowsMeet(a, a_begin, b, b_begin, region);
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
  wire::EncodeSize3(origin, out->mutable_origin());
  wire::EncodeSize3(region, out->mutable_region());
  out->set_row_pitch(rect.row_pitch);
  out->set_slice_pitch(rect.slice_pitch);
}

}  // namespace sluice::client
