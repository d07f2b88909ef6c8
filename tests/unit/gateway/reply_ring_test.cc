// SPDX-License-Identifier: Apache-2.0
#include "daemon/gateway/reply_ring.h"

#include <gtest/gtest.h>

#include <thread>

#include "proto/ring_writer.h"
#include "tests/unit/gateway/ring_memory.h"

namespace sluice::gateway {
namespace {

class ReplyRingTest : public testing::Test {
 protected:
  wire::RingShared* shared() { return reinterpret_cast<wire::RingShared*>(memory_.data()); }

  TestMemory memory_{wire::kRingFileBytes};
  wire::RingWriter worker_{memory_.data()};
  ReplyRing ring_{memory_.data()};
  wire::PieceHeader piece_ = {};
  std::string body_;
};

// Pieces come out as they went in, also around the ring's end.
TEST_F(ReplyRingTest, DeliversPieces) {
  for (int i = 0; i < 100; ++i) {
    const std::string body = Pattern(40'001 + i, i + 1);
    ASSERT_TRUE(worker_.TryWritePiece({static_cast<uint32_t>(body.size()), wire::kPieceFirst}, body,
                                      {}, {}));
    ASSERT_TRUE(*ring_.Next(&piece_, &body_));
    EXPECT_EQ(piece_.flags, wire::kPieceFirst);
    ASSERT_EQ(body_, body);
  }
  EXPECT_FALSE(*ring_.Next(&piece_, &body_));
}

// A worker that claims more than the ring holds, or half a piece, or a piece larger than what is
// there, is refused.
TEST_F(ReplyRingTest, RefusesImpossibleClaims) {
  const auto claim = [this](uint64_t produced, wire::PieceHeader header) {
    std::memcpy(memory_.data() + wire::kRingDataOffset, &header, sizeof(header));
    shared()->produced.store(produced);
    ReplyRing ring(memory_.data());
    return ring.Next(&piece_, &body_).ok();
  };
  EXPECT_FALSE(claim(wire::kRingCapacity + 8, {8, wire::kPieceFirst}));
  EXPECT_FALSE(claim(12, {4, wire::kPieceFirst}));
  EXPECT_FALSE(claim(64, {100, wire::kPieceFirst}));
  EXPECT_FALSE(claim(64, {0xfffffff0, wire::kPieceFirst}));
  EXPECT_FALSE(claim(64, {8, 32}));
  EXPECT_TRUE(claim(64, {56, wire::kPieceFirst}));
}

// A sleeper is woken by a piece, and by Wake.
TEST_F(ReplyRingTest, Wakes) {
  uint32_t ticket = ring_.Arm();
  std::thread worker([this] {
    ASSERT_TRUE(worker_.TryWritePiece({8, wire::kPieceFirst}, "12345678", {}, {}));
    worker_.Notify(wire::Wake::kIfAwaited, 77);
  });
  while (!ring_.HasPiece()) ring_.Wait(ticket, -1);
  worker.join();
  ASSERT_TRUE(*ring_.Next(&piece_, &body_));
  ticket = ring_.Arm();
  std::thread waker([this] { ring_.Wake(); });
  ring_.Wait(ticket, -1);
  waker.join();
}

}  // namespace
}  // namespace sluice::gateway
