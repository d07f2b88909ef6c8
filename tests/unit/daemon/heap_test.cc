// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/memory/heap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "broker/os/local_socket.h"
#include "proto/handle_messages.h"

namespace sluice::worker {
namespace {

class HeapTest : public ::testing::Test {
 protected:
  HeapTest() : ends_(*os::CreateSocketPair()) {}

  // The announcements that have come so far.
  std::vector<wire::HandleMessage> Announced() {
    std::vector<wire::HandleMessage> messages;
    while (os::WaitReadable(ends_.second.get(), 0).ok()) {
      wire::HandleMessage message;
      std::vector<os::UniqueFd> fds;
      const auto size = os::ReceiveMessage(ends_.second.get(), &message, sizeof(message), &fds, 1);
      if (!size.ok() || *size != sizeof(message)) break;
      EXPECT_EQ(fds.size(), 1u);
      EXPECT_TRUE(os::VerifySharedMemory(fds[0].get(), message.size).ok());
      messages.push_back(message);
    }
    return messages;
  }

  std::pair<os::UniqueFd, os::UniqueFd> ends_;
};

// A segment is announced, sealed and with its size, before any span of it is given out.
TEST_F(HeapTest, SegmentsAreAnnouncedFirst) {
  Heap heap(ends_.first.get(), uint64_t{1} << 40);
  const absl::StatusOr<HeapSpan> span = heap.Allocate(100);
  ASSERT_TRUE(span.ok());
  const std::vector<wire::HandleMessage> messages = Announced();
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_EQ(messages[0].magic, wire::kHandleMagic);
  EXPECT_EQ(messages[0].type, wire::HandleMessageType::kHeapSegment);
  EXPECT_EQ(messages[0].segment, span->segment);
  EXPECT_GE(messages[0].size, span->offset + span->size);
}

// A span larger than a usual segment gets a segment of its own size.
TEST_F(HeapTest, LargeSpansGetLargeSegments) {
  Heap heap(ends_.first.get(), uint64_t{1} << 40);
  const absl::StatusOr<HeapSpan> span = heap.Allocate(200 << 20);
  ASSERT_TRUE(span.ok());
  span->data[span->size - 1] = 1;
  EXPECT_GE(Announced().at(0).size, uint64_t{200} << 20);
}

// Spans never overlap, are aligned to pages and zero, in whatever order they come and go.
TEST_F(HeapTest, SpansAreDisjointAndZero) {
  Heap heap(ends_.first.get(), uint64_t{1} << 40);
  std::mt19937 random(7);
  std::vector<HeapSpan> live;
  for (int i = 0; i < 2000; ++i) {
    if (live.size() > 40 || (!live.empty() && random() % 3 == 0)) {
      const size_t at = random() % live.size();
      heap.Free(live[at]);
      live.erase(live.begin() + static_cast<ptrdiff_t>(at));
      continue;
    }
    const absl::StatusOr<HeapSpan> span = heap.Allocate(1 + random() % 200000);
    ASSERT_TRUE(span.ok());
    EXPECT_EQ(span->offset % 4096, 0u);
    EXPECT_EQ(std::count(span->data, span->data + span->size, 0),
              static_cast<ptrdiff_t>(span->size));
    std::memset(span->data, 0xff, span->size);
    for (const HeapSpan& other : live) {
      EXPECT_TRUE(other.segment != span->segment || other.offset + other.size <= span->offset ||
                  span->offset + span->size <= other.offset);
    }
    live.push_back(*span);
  }
  for (const HeapSpan& span : live) heap.Free(span);
  EXPECT_EQ(heap.used_bytes(), 0u);
  // All of it has grown together again: one segment holds it.
  EXPECT_TRUE(heap.Allocate(64 << 20).ok());
  EXPECT_EQ(Announced().size(), 1u);
}

// An application whose buffers grow does not collect segments, which are there for good in the
// worker, the client and the gateway; nor does one that has many buffers.
TEST_F(HeapTest, SegmentsAreFew) {
  for (const Heap::Freed freed : {Heap::Freed::kZeroed, Heap::Freed::kKept}) {
    Heap heap(ends_.first.get(), uint64_t{1} << 40, 1, 0, freed);
    size_t segments = 0;
    for (uint64_t i = 0; i < 500; ++i) {
      const absl::StatusOr<HeapSpan> span = heap.Allocate((64 << 20) + i * 4096);
      ASSERT_TRUE(span.ok()) << span.status();
      heap.Free(*span);
      segments += Announced().size();
    }
    EXPECT_LE(segments, 8u);
  }
  Heap heap(ends_.first.get(), uint64_t{1} << 40);
  size_t segments = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    const absl::StatusOr<HeapSpan> span = heap.Allocate(64 << 20);
    ASSERT_TRUE(span.ok()) << span.status();
    segments += Announced().size();
  }
  EXPECT_LE(segments, 32u);
}

// Nothing is given out over the limit, not even by sizes that wrap, and freeing makes room again.
TEST_F(HeapTest, LimitHolds) {
  Heap heap(ends_.first.get(), 1 << 20);
  EXPECT_FALSE(heap.Allocate(0).ok());
  EXPECT_FALSE(heap.Allocate((1 << 20) + 1).ok());
  EXPECT_FALSE(heap.Allocate(UINT64_MAX).ok());
  EXPECT_FALSE(heap.Allocate(UINT64_MAX - 4000).ok());
  const absl::StatusOr<HeapSpan> all = heap.Allocate(1 << 20);
  ASSERT_TRUE(all.ok());
  EXPECT_FALSE(heap.Allocate(1).ok());
  heap.Free(*all);
  EXPECT_TRUE(heap.Allocate(1).ok());
}

// A driver that tells the end of a command before it lets go of what the command used is waited for.
TEST_F(HeapTest, WaitsForWhatTheDriverStillHolds) {
  Heap heap(ends_.first.get(), 1 << 20);
  for (int round = 0; round < 300; ++round) {
    const absl::StatusOr<HeapSpan> all = heap.Allocate(1 << 20);
    ASSERT_TRUE(all.ok()) << all.status() << " in round " << round;
    std::shared_ptr<const HeapSpan> ours = heap.Hold(*all);
    std::thread driver([drivers = ours]() mutable { drivers.reset(); });
    heap.LeaveToDriver(std::move(ours));
    const absl::StatusOr<HeapSpan> next = heap.Allocate(1);
    EXPECT_TRUE(next.ok()) << next.status() << " in round " << round;
    driver.join();
    if (next.ok()) heap.Free(*next);
  }
}

// One that does not let go costs a creation over the limit some time, not its answer.
TEST_F(HeapTest, DoesNotWaitForever) {
  Heap heap(ends_.first.get(), 1 << 20);
  std::shared_ptr<const HeapSpan> ours = heap.Hold(*heap.Allocate(1 << 20));
  const std::shared_ptr<const HeapSpan> drivers = ours;
  heap.LeaveToDriver(std::move(ours));
  EXPECT_EQ(heap.Allocate(1).status().code(), absl::StatusCode::kResourceExhausted);
}

// A limit of everything is a limit that lets things through.
TEST_F(HeapTest, NoLimitIsNoRefusal) {
  Heap heap(ends_.first.get(), UINT64_MAX);
  EXPECT_TRUE(heap.Allocate(5000).ok());
  EXPECT_FALSE(heap.Allocate(UINT64_MAX - 100).ok());
}

// When the client is gone there is no new segment, and that is an error, not a crash.
TEST_F(HeapTest, ClientGone) {
  ends_.second.reset();
  Heap heap(ends_.first.get(), 1 << 20);
  EXPECT_FALSE(heap.Allocate(1).ok());
  EXPECT_EQ(heap.used_bytes(), 0u);
}

}  // namespace
}  // namespace sluice::worker
