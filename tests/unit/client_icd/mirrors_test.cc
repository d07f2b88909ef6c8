// SPDX-License-Identifier: Apache-2.0
#include "client_icd/session/mirrors.h"

#include <gtest/gtest.h>

namespace sluice::client {
namespace {

// Memory is found in the mirror it lies in, whole, and only as long as that is there.
TEST(MirrorsTest, FindsWhatLiesInOne) {
  uint8_t memory[300] = {};
  Mirrors mirrors;
  MirrorPlace place;
  EXPECT_FALSE(mirrors.Find(memory, 1, &place));
  mirrors.Add(memory, 100, 7);
  mirrors.Add(memory + 200, 100, 8);
  ASSERT_TRUE(mirrors.Find(memory + 10, 90, &place));
  EXPECT_EQ(place.mem_id, 7u);
  EXPECT_EQ(place.offset, 10u);
  ASSERT_TRUE(mirrors.Find(memory + 200, 100, &place));
  EXPECT_EQ(place.mem_id, 8u);
  EXPECT_EQ(place.offset, 0u);
  EXPECT_FALSE(mirrors.Find(memory + 10, 91, &place));
  EXPECT_FALSE(mirrors.Find(memory + 150, 1, &place));
  EXPECT_FALSE(mirrors.Find(memory + 199, 2, &place));
  EXPECT_FALSE(mirrors.Find(memory + 10, ~uint64_t{0}, &place));
  mirrors.Remove(memory);
  EXPECT_FALSE(mirrors.Find(memory + 10, 1, &place));
  EXPECT_TRUE(mirrors.Find(memory + 299, 1, &place));
}

}  // namespace
}  // namespace sluice::client
