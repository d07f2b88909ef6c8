// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "daemon/worker/object_table.h"
#include "daemon/worker/queues/queue.h"
#include "tests/fake_cl/fake_cl.h"

namespace sluice::worker {
namespace {

// An id finds its object as the type it is, and nothing as any other.
TEST(ObjectTableTest, TypesAreKept) {
  fake::FakeCl::Install();
  ObjectTable table;
  EXPECT_TRUE(table.Insert(5, std::make_shared<EventObject>()));
  EXPECT_NE(table.Peek<EventObject>(5), nullptr);
  EXPECT_NE(table.Find<EventObject>(5), nullptr);
  EXPECT_EQ(table.Peek<QueueObject>(5), nullptr);
  EXPECT_EQ(table.Find<MemoryObject>(5), nullptr);
  EXPECT_EQ(table.Peek<EventObject>(6), nullptr);
}

// An id in use takes no second object, and keeps its first.
TEST(ObjectTableTest, IdsAreNotReplaced) {
  ObjectTable table;
  const auto first = std::make_shared<EventObject>();
  EXPECT_TRUE(table.Insert(1, first));
  EXPECT_FALSE(table.Insert(1, std::make_shared<EventObject>()));
  EXPECT_EQ(table.Find<EventObject>(1), first);
}

// A released object lives on for whoever holds it, and is found no more.
TEST(ObjectTableTest, ReleaseDoesNotPullAway) {
  ObjectTable table;
  table.Insert(1, std::make_shared<EventObject>());
  const auto held = table.Find<EventObject>(1);
  table.Erase(1);
  table.Erase(1);
  EXPECT_FALSE(table.Contains(1));
  EXPECT_EQ(held.use_count(), 1);
}

// An SVM address is one only within one allocation, whatever is added to it.
TEST(ObjectTableTest, SvmPointersAreBounded) {
  ObjectTable table;
  uint8_t memory[64];
  auto svm = std::make_shared<SvmObject>();
  svm->span = std::make_shared<const HeapSpan>(HeapSpan{1, 0, sizeof(memory), memory});
  table.Insert(1, svm);
  const auto base = reinterpret_cast<uint64_t>(memory);
  EXPECT_EQ(table.SvmPointer(base + 10, 54), memory + 10);
  EXPECT_EQ(table.SvmPointer(base + 10, 55), nullptr);
  EXPECT_EQ(table.SvmPointer(base - 1, 1), nullptr);
  EXPECT_EQ(table.SvmPointer(base + 1, UINT64_MAX), nullptr);
  EXPECT_EQ(table.SvmPointer(0, 0), nullptr);
}

}  // namespace
}  // namespace sluice::worker
