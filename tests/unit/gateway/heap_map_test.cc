// SPDX-License-Identifier: Apache-2.0
#include "daemon/gateway/heap_map.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "tests/unit/gateway/ring_memory.h"

namespace sluice::gateway {
namespace {

constexpr size_t kSize = 16384;

// A span is where its segment's maker sees it.
TEST(HeapMapTest, ResolvesSpans) {
  const TestMemory memory(kSize);
  HeapMap heap;
  ASSERT_TRUE(heap.Add(1, memory.Duplicate(), kSize).ok());
  const MappedSpan span = heap.Resolve({1, 4096, 16});
  ASSERT_NE(span.data, nullptr);
  span.data[3] = 42;
  EXPECT_EQ(memory.data()[4099], 42);
}

// A span outside its segment, or that wraps past 2^64, has no pointer.
TEST(HeapMapTest, RefusesSpansOutside) {
  const TestMemory memory(kSize);
  HeapMap heap;
  ASSERT_TRUE(heap.Add(1, memory.Duplicate(), kSize).ok());
  EXPECT_EQ(heap.Resolve({1, kSize, 1}).data, nullptr);
  EXPECT_EQ(heap.Resolve({1, 0, kSize + 1}).data, nullptr);
  EXPECT_EQ(heap.Resolve({1, 4096, ~uint64_t{0}}).data, nullptr);
  EXPECT_EQ(heap.Resolve({0, 0, 1}).data, nullptr);
}

// Memory that its maker could still shrink, of another size than announced, or announced twice, is
// refused.
TEST(HeapMapTest, RefusesUnsafeSegments) {
  HeapMap heap;
  os::UniqueFd unsealed(::memfd_create("unsealed", MFD_ALLOW_SEALING | MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(unsealed.get(), kSize), 0);
  EXPECT_FALSE(heap.Add(1, std::move(unsealed), kSize).ok());
  const TestMemory memory(kSize);
  EXPECT_FALSE(heap.Add(1, memory.Duplicate(), kSize * 2).ok());
  EXPECT_FALSE(heap.Add(0, memory.Duplicate(), kSize).ok());
  EXPECT_TRUE(heap.Add(1, memory.Duplicate(), kSize).ok());
  EXPECT_FALSE(heap.Add(1, memory.Duplicate(), kSize).ok());
}

// A worker cannot take the address space that all sessions share.
TEST(HeapMapTest, BoundsAllSegmentsTogether) {
  const TestMemory memory(kSize);
  HeapMap heap(kSize * 5 / 2);
  EXPECT_TRUE(heap.Add(1, memory.Duplicate(), kSize).ok());
  EXPECT_TRUE(heap.Add(2, memory.Duplicate(), kSize).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(heap.Add(3, memory.Duplicate(), kSize)));
}

// Nor the descriptors and mappings, of which a process has some 65,000.
TEST(HeapMapTest, BoundsNumberOfSegments) {
  const auto open_files = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
  };
  const TestMemory memory(kSize);
  HeapMap heap;
  const auto before = open_files();
  uint32_t taken = 0;
  while (taken < 1000 && heap.Add(taken + 1, memory.Duplicate(), kSize).ok()) ++taken;
  EXPECT_GE(taken, 100u);
  EXPECT_LT(taken, 65'000u / 256);  // The broker's usual limit of sessions.
  // Descriptors that others closed meanwhile are not ours to count.
  EXPECT_LE(open_files(), before);
}

// A frame may be ahead of its segment: the reader waits for it, and no longer than until there is
// none to come.
TEST(HeapMapTest, WaitsForSegment) {
  const TestMemory memory(kSize);
  HeapMap heap;
  std::thread adder([&] { ASSERT_TRUE(heap.Add(1, memory.Duplicate(), kSize).ok()); });
  EXPECT_NE(heap.Resolve({1, 0, 1}, absl::Seconds(60)).data, nullptr);
  adder.join();
  std::thread ender([&] { heap.End(); });
  EXPECT_EQ(heap.Resolve({2, 0, 1}, absl::Seconds(60)).data, nullptr);
  ender.join();
  EXPECT_EQ(heap.Resolve({2, 0, 1}, absl::ZeroDuration()).data, nullptr);
}

}  // namespace
}  // namespace sluice::gateway
