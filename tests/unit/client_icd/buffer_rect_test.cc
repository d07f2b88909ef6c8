// SPDX-License-Identifier: Apache-2.0
#include "client_icd/base/buffer_rect.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace sluice::client {
namespace {

// Pitches that were left out are those of tightly packed memory; begin and end frame the bytes.
TEST(BufferRectTest, CompletesPitches) {
  const size_t origin[3] = {3, 2, 1};
  const size_t region[3] = {4, 5, 6};
  PitchedRect rect{0, 0};
  ASSERT_TRUE(CompleteRect(origin, region, &rect));
  EXPECT_EQ(rect.row_pitch, 4u);
  EXPECT_EQ(rect.slice_pitch, 20u);
  EXPECT_EQ(rect.begin, 20u + 8u + 3u);
  EXPECT_EQ(rect.end, rect.begin + 5 * 20 + 4 * 4 + 4);
}

// Section 5.2.2's cases are refused: empty regions, pitches too small or unlike, sums that do not
// fit.
TEST(BufferRectTest, Refuses) {
  const size_t origin[3] = {0, 0, 0};
  struct Row {
    size_t region[3];
    PitchedRect rect;
  };
  for (const Row& row : {Row{{0, 1, 1}, {0, 0}}, Row{{1, 0, 1}, {0, 0}}, Row{{1, 1, 0}, {0, 0}},
                         Row{{8, 2, 1}, {7, 0}}, Row{{8, 2, 1}, {8, 15}}, Row{{8, 2, 1}, {8, 17}},
                         Row{{~size_t{0}, 2, 1}, {0, 0}}, Row{{2, ~size_t{0}, 2}, {0, 0}}}) {
    PitchedRect rect = row.rect;
    EXPECT_FALSE(CompleteRect(origin, row.region, &rect));
  }
  const size_t far[3] = {0, 0, ~size_t{0}};
  const size_t region[3] = {2, 2, 2};
  PitchedRect rect{0, 0};
  EXPECT_FALSE(CompleteRect(far, region, &rect));
}

std::set<uint64_t> BytesOf(const PitchedRect& rect, const size_t* region) {
  std::set<uint64_t> bytes;
  for (size_t z = 0; z < region[2]; ++z) {
    for (size_t y = 0; y < region[1]; ++y) {
      for (size_t x = 0; x < region[0]; ++x)
        bytes.insert(rect.begin + z * rect.slice_pitch + y * rect.row_pitch + x);
    }
  }
  return bytes;
}

// Two rectangles overlap exactly when some byte belongs to both, however they wrap around rows and
// slices, of one grid or (every other time) of two.
TEST(BufferRectTest, OverlapAgreesWithCounting) {
  std::mt19937 random(7);
  int overlaps = 0;
  for (int i = 0; i < 20000; ++i) {
    const auto pick = [&](size_t from, size_t to) { return from + random() % (to - from + 1); };
    const size_t region[3] = {pick(1, 5), pick(1, 3), pick(1, 3)};
    const size_t a_origin[3] = {pick(0, 8), pick(0, 5), pick(0, 3)};
    const size_t b_origin[3] = {pick(0, 8), pick(0, 5), pick(0, 3)};
    const auto grid = [&] {
      const size_t row_pitch = region[0] + pick(0, 3);
      return PitchedRect{row_pitch, row_pitch * (region[1] + pick(0, 2))};
    };
    PitchedRect a = grid();
    PitchedRect b = i % 2 == 0 ? a : grid();
    ASSERT_TRUE(CompleteRect(a_origin, region, &a) && CompleteRect(b_origin, region, &b));
    const std::set<uint64_t> in_a = BytesOf(a, region);
    bool expected = false;
    for (const uint64_t byte : BytesOf(b, region)) expected = expected || in_a.count(byte) != 0;
    EXPECT_EQ(RectsOverlap(a, a.begin, b, b.begin, region), expected);
    overlaps += expected ? 1 : 0;
  }
  EXPECT_GT(overlaps, 1000);
  EXPECT_LT(overlaps, 19000);
}

}  // namespace
}  // namespace sluice::client
