// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/replies.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "proto/ring_reader.h"

namespace sluice::worker {
namespace {

// The feeding thread may still be at its last look when a test is over.
struct ReplyRing {
  ReplyRing() : memory(static_cast<uint8_t*>(std::aligned_alloc(4096, wire::kRingFileBytes))) {
    std::memset(memory, 0, wire::kRingDataOffset);
    replies = new Replies(memory);
    reader = std::make_unique<wire::RingReader>(memory);
    All().push_back(memory);
    AllReplies().push_back(replies);
  }
  static std::vector<uint8_t*>& All() {
    static auto& all = *new std::vector<uint8_t*>;
    return all;
  }
  static std::vector<Replies*>& AllReplies() {
    static auto& all = *new std::vector<Replies*>;
    return all;
  }

  // Sequence of the next answer.
  uint64_t Next() {
    wire::Frame frame;
    while (true) {
      const absl::StatusOr<bool> got = reader->Next(&frame);
      if (!got.ok()) return 0;
      if (*got) {
        pb::Reply reply;
        const std::string_view message = frame.message();
        if (!reply.ParseFromArray(message.data(), static_cast<int>(message.size()))) return 0;
        return reply.answer().sequence();
      }
      reader->Sleep(wire::kSleepsForAny, 0, wire::kBitWaiter, 1'000'000'000);
    }
  }
  void Send(uint64_t sequence, std::string_view payload) {
    pb::Reply reply;
    reply.mutable_answer()->set_sequence(sequence);
    replies->Send(reply, wire::Wake::kWaiter, payload);
  }

  uint8_t* const memory;
  Replies* replies = nullptr;
  std::unique_ptr<wire::RingReader> reader;
};

// Replies that do not fit wait, and come in order, whatever was sent in between.
TEST(RepliesTest, WaitingRepliesKeepTheirOrder) {
  ReplyRing ring;
  const std::string payload(100000, 'x');
  for (uint64_t i = 1; i <= 100; ++i) ring.Send(i, i % 2 == 0 ? payload : "small");
  for (uint64_t i = 1; i <= 100; ++i) ASSERT_EQ(ring.Next(), i);
  ring.Send(101, "");
  EXPECT_EQ(ring.Next(), 101u);
}

// Many threads may send; each one's replies stay in its order and none is lost.
TEST(RepliesTest, ManySenders) {
  ReplyRing ring;
  constexpr uint64_t kThreads = 4, kEach = 400;
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 1; i <= kEach; ++i) ring.Send(t * 10000 + i, std::string(3000, 'x'));
    });
  }
  uint64_t last[kThreads] = {};
  for (uint64_t n = 0; n < kThreads * kEach; ++n) {
    const uint64_t sequence = ring.Next();
    uint64_t& mine = last[sequence / 10000];
    ASSERT_EQ(sequence % 10000, mine + 1);
    mine = sequence % 10000;
  }
  for (std::thread& thread : threads) thread.join();
}

// A client with an impossible cursor is found out: that is told once, and nothing piles up for it.
TEST(RepliesTest, ImpossibleCursorIsToldOnce) {
  ReplyRing ring;
  int told = 0;
  ring.replies->set_on_violated([&] { ++told; });
  reinterpret_cast<wire::RingShared*>(ring.memory)->consumed.store(uint64_t{1} << 50);
  for (uint64_t i = 1; i <= 50; ++i) ring.Send(i, std::string(100000, 'x'));
  EXPECT_TRUE(ring.replies->violated());
  EXPECT_EQ(told, 1);
}

}  // namespace
}  // namespace sluice::worker
