// SPDX-License-Identifier: Apache-2.0
#include "proto/heap_span.h"

#include <gtest/gtest.h>

namespace sluice::wire {
namespace {

// A span fits if and only if all of it lies within the limit, at the very edges too.
TEST(HeapSpanTest, FitsUpToTheLimit) {
  EXPECT_TRUE(SpanFits(0, 0, 0));
  EXPECT_TRUE(SpanFits(0, 10, 10));
  EXPECT_TRUE(SpanFits(10, 0, 10));
  EXPECT_FALSE(SpanFits(0, 11, 10));
  EXPECT_FALSE(SpanFits(11, 0, 10));
  EXPECT_FALSE(SpanFits(5, 6, 10));
}

// No sum of offset and size can wrap into the limit.
TEST(HeapSpanTest, WrappingSumsDoNotFit) {
  EXPECT_FALSE(SpanFits(UINT64_MAX, 1, 10));
  EXPECT_FALSE(SpanFits(1, UINT64_MAX, 10));
  EXPECT_FALSE(SpanFits(UINT64_MAX, UINT64_MAX, UINT64_MAX - 1));
  EXPECT_TRUE(SpanFits(UINT64_MAX, 0, UINT64_MAX));
}

// A span that fits is a pointer into the mapping; any other is none.
TEST(HeapSpanTest, PointerOnlyWhereItFits) {
  uint8_t memory[16];
  EXPECT_EQ(SpanPointer(memory, sizeof(memory), 4, 12), memory + 4);
  EXPECT_EQ(SpanPointer(memory, sizeof(memory), 4, 13), nullptr);
  EXPECT_EQ(SpanPointer(memory, sizeof(memory), UINT64_MAX - 3, 8), nullptr);
  EXPECT_EQ(SpanPointer(nullptr, 0, 0, 0), nullptr);
}

}  // namespace
}  // namespace sluice::wire
