// SPDX-License-Identifier: Apache-2.0
#include "daemon/gateway/grant_table.h"

#include <gtest/gtest.h>

namespace sluice::gateway {
namespace {

class GrantTableTest : public testing::Test {
 protected:
  uint8_t memory_[1000] = {};
  MappedSpan Mapped(size_t at) { return {memory_ + at, nullptr}; }
};

// A chunk inside a grant is found, with the part of the span that is its own.
TEST_F(GrantTableTest, FindsPartOfGrant) {
  GrantTable table;
  table.Add(7, 100, 50, {3, 4096, 50}, Mapped(0));
  table.Add(7, 150, 50, {3, 8192, 50}, Mapped(500));
  wire::BulkSpan span;
  EXPECT_EQ(table.Find(7, 160, 40, &span).data, memory_ + 510);
  EXPECT_EQ(span.segment, 3u);
  EXPECT_EQ(span.offset, 8202u);
  EXPECT_EQ(span.size, 40u);
}

// A span that was not granted is not found: another event, before, beyond, across two grants, or
// wrapping around.
TEST_F(GrantTableTest, FindsNothingElse) {
  GrantTable table;
  table.Add(7, 100, 50, {3, 4096, 50}, Mapped(0));
  table.Add(7, 150, 50, {3, 8192, 50}, Mapped(500));
  wire::BulkSpan span;
  EXPECT_EQ(table.Find(6, 100, 1, &span).data, nullptr);
  EXPECT_EQ(table.Find(8, 100, 1, &span).data, nullptr);
  EXPECT_EQ(table.Find(7, 99, 1, &span).data, nullptr);
  EXPECT_EQ(table.Find(7, 140, 20, &span).data, nullptr);
  EXPECT_EQ(table.Find(7, 199, 2, &span).data, nullptr);
  EXPECT_EQ(table.Find(7, 120, ~uint64_t{0} - 10, &span).data, nullptr);
  EXPECT_EQ(table.Find(7, ~uint64_t{0}, 2, &span).data, nullptr);
}

// A grant whose bytes have all come is forgotten; one that lacks some is not.
TEST_F(GrantTableTest, ForgetsUsedGrants) {
  GrantTable table;
  table.Add(7, 0, 100, {1, 0, 100}, Mapped(0));
  table.Used(7, 0, 60);
  EXPECT_EQ(table.size(), 1u);
  table.Used(7, 60, 40);
  EXPECT_EQ(table.size(), 0u);
}

// Grants that are never used up do not pile up: the oldest goes.
TEST_F(GrantTableTest, IsBounded) {
  GrantTable table(3);
  for (uint64_t event = 1; event <= 5; ++event) table.Add(event, 0, 10, {1, 0, 10}, Mapped(0));
  EXPECT_EQ(table.size(), 3u);
  wire::BulkSpan span;
  EXPECT_EQ(table.Find(2, 0, 10, &span).data, nullptr);
  EXPECT_NE(table.Find(3, 0, 10, &span).data, nullptr);
  table.Add(3, 0, 10, {1, 0, 10}, Mapped(0));  // Again: not a fourth.
  EXPECT_EQ(table.size(), 3u);
}

}  // namespace
}  // namespace sluice::gateway
