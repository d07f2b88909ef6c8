// SPDX-License-Identifier: Apache-2.0
#include "daemon/gateway/command_forwarder.h"

#include <gtest/gtest.h>

#include "proto/ring_reader.h"
#include "tests/unit/gateway/ring_memory.h"

namespace sluice::gateway {
namespace {

using Outcome = CommandForwarder::Outcome;

class CommandForwarderTest : public testing::Test {
 protected:
  // Feeds pieces as one message, cut into slices.
  absl::StatusOr<Outcome> Feed(const std::string& pieces, size_t slice_bytes = 1000) {
    EXPECT_TRUE(reader_.Reset(Sliced(PiecesMessage(pieces), slice_bytes)));
    uint32_t field = 0;
    EXPECT_EQ(reader_.NextField(&field), wire::MessageReader::Step::kField);
    return forwarder_.Forward(&reader_);
  }
  bool Take(wire::Frame* frame) {
    const absl::StatusOr<bool> got = worker_.Next(frame);
    EXPECT_TRUE(got.ok()) << got.status();
    return got.ok() && *got;
  }
  // A grant over all of heap_, for `event_id`'s bytes from `offset`.
  void Grant(uint64_t event_id, uint64_t offset) {
    grants_.Add(event_id, offset, sizeof(heap_), {5, 8192, sizeof(heap_)}, {heap_, nullptr});
  }

  TestMemory ring_{wire::kRingFileBytes};
  wire::RingReader worker_{ring_.data()};
  GrantTable grants_;
  CommandForwarder forwarder_{ring_.data(), &grants_};
  wire::MessageReader reader_;
  uint8_t heap_[200'000] = {};
};

// A frame, also one of many pieces, reaches the worker byte for byte, however the network has cut
// it.
TEST_F(CommandForwarderTest, PassesFramesOn) {
  const std::string message = Pattern(300);
  const std::string payload = Pattern(200'001, 2);
  for (const size_t slice_bytes : {7u, 8192u, 1u << 20}) {
    ASSERT_EQ(*Feed(FrameBytes(message, payload), slice_bytes), Outcome::kDone);
    wire::Frame frame;
    ASSERT_TRUE(Take(&frame));
    EXPECT_EQ(frame.message(), message);
    EXPECT_EQ(frame.payload(), payload);
  }
}

// A chunk's bytes go where the worker granted; the frame reaches it without them and names the
// place.
TEST_F(CommandForwarderTest, PutsChunkIntoGrantedSpan) {
  Grant(9, 1000);
  const std::string bytes = Pattern(150'000);
  ASSERT_EQ(
      *Feed(FrameBytes(ChunkMessage(9, 1500, bytes.size()), bytes, wire::kFrameTransferChunk), 999),
      Outcome::kDone);
  wire::Frame frame;
  ASSERT_TRUE(Take(&frame));
  EXPECT_EQ(frame.payload().size(), 0u);
  EXPECT_EQ(frame.message(), ChunkMessage(9, 1500, bytes.size()));
  EXPECT_EQ(frame.bulk().segment, 5u);
  EXPECT_EQ(frame.bulk().offset, 8192u + 500);
  EXPECT_EQ(frame.bulk().size, bytes.size());
  EXPECT_EQ(std::string(reinterpret_cast<char*>(heap_) + 500, bytes.size()), bytes);
  EXPECT_EQ(heap_[499], 0);
  EXPECT_EQ(heap_[500 + bytes.size()], 0);
}

// A chunk that was never granted writes nowhere, and the frame still arrives: sequence numbers have
// no gap.
TEST_F(CommandForwarderTest, DropsBytesWithoutGrant) {
  Grant(9, 0);
  const std::string bytes = Pattern(1000);
  ASSERT_EQ(*Feed(FrameBytes(ChunkMessage(8, 0, bytes.size()), bytes, wire::kFrameTransferChunk)),
            Outcome::kDone);
  ASSERT_EQ(*Feed(FrameBytes(ChunkMessage(9, sizeof(heap_) - 1, bytes.size()), bytes,
                             wire::kFrameTransferChunk)),
            Outcome::kDone);
  wire::Frame frame;
  ASSERT_TRUE(Take(&frame));
  EXPECT_EQ(frame.bulk().segment, 0u);
  ASSERT_TRUE(Take(&frame));
  EXPECT_EQ(frame.bulk().segment, 0u);
  for (const uint8_t byte : heap_) ASSERT_EQ(byte, 0);
}

// A chunk that says another size than it has is a violation, and writes nothing outside what it
// says.
TEST_F(CommandForwarderTest, RefusesChunkOfAnotherSize) {
  Grant(9, 0);
  EXPECT_FALSE(
      Feed(FrameBytes(ChunkMessage(9, 0, 10), Pattern(1000), wire::kFrameTransferChunk)).ok());
  for (const uint8_t byte : heap_) ASSERT_EQ(byte, 0);
}

// A frame that is marked as a chunk and is another command, or no command, is a violation.
TEST_F(CommandForwarderTest, RefusesFalseChunk) {
  v1::Command command;
  command.mutable_flush()->set_queue_id(1);
  EXPECT_FALSE(Feed(FrameBytes(command.SerializeAsString(), "", wire::kFrameTransferChunk)).ok());
}

// A chunk whose pieces hold more or fewer bytes than its header says is a violation.
TEST_F(CommandForwarderTest, RefusesChunkThatBreaksItsHeader) {
  Grant(9, 0);
  const std::string message = ChunkMessage(9, 0, 1000);
  std::string more = FrameBytes(message, Pattern(1000), wire::kFrameTransferChunk);
  wire::PieceHeader piece;
  std::memcpy(&piece, more.data(), sizeof(piece));
  piece.body_bytes += 8;
  std::memcpy(more.data(), &piece, sizeof(piece));
  more.append(8, 'x');
  EXPECT_FALSE(Feed(more).ok());
}

// Pieces that make no frame are violations: cut short, of no known flags, too large, without a
// header, out of order.
TEST_F(CommandForwarderTest, RefusesMalformedPieces) {
  const auto piece = [](uint32_t body_bytes, uint32_t flags, size_t there) {
    const wire::PieceHeader header = {body_bytes, flags};
    return std::string(reinterpret_cast<const char*>(&header), sizeof(header)) +
           std::string(there, '\0');
  };
  constexpr uint32_t kWhole = wire::kPieceFirst | wire::kPieceLast;
  const std::string malformed[] = {
      std::string("short"),
      piece(64, kWhole, 56),
      piece(64, 8, 64),
      piece(wire::kMaxPieceBody + 8, wire::kPieceFirst, wire::kMaxPieceBody + 8),
      piece(40, kWhole, 40),
      piece(64, wire::kPieceLast, 64),
      piece(0xffffffff, kWhole, 64),
      piece(64, wire::kPieceFirst, 64) + piece(64, wire::kPieceFirst, 64)};
  for (const std::string& pieces : malformed) {
    TestMemory ring(wire::kRingFileBytes);
    CommandForwarder forwarder(ring.data(), &grants_);
    ASSERT_TRUE(reader_.Reset(Sliced(PiecesMessage(pieces), 50)));
    uint32_t field = 0;
    ASSERT_EQ(reader_.NextField(&field), wire::MessageReader::Step::kField);
    EXPECT_FALSE(forwarder.Forward(&reader_).ok()) << testing::PrintToString(pieces.substr(0, 16));
  }
}

// When the ring is full the rest of the message waits, and nothing is lost or sent twice.
TEST_F(CommandForwarderTest, GoesOnWhereTheRingWasFull) {
  Grant(9, 0);
  const std::string payload = Pattern(3 << 20);
  const std::string chunk = Pattern(1000, 3);
  std::string pieces = FrameBytes("first", payload);
  pieces += FrameBytes(ChunkMessage(9, 0, chunk.size()), chunk, wire::kFrameTransferChunk, 2);
  pieces += FrameBytes("last", Pattern(wire::kRingCapacity / 2), 0, 3);
  absl::StatusOr<Outcome> outcome = Feed(pieces, 10'000);
  std::vector<uint64_t> sequences;
  int rounds = 0;
  wire::Frame frame;
  while (true) {
    ASSERT_TRUE(outcome.ok()) << outcome.status();
    while (Take(&frame)) {
      sequences.push_back(frame.header().sequence);
      if (sequences.size() == 1) {
        EXPECT_EQ(frame.payload(), payload);
      }
    }
    if (*outcome == Outcome::kDone) break;
    ++rounds;
    outcome = forwarder_.Forward(&reader_);
  }
  EXPECT_GE(rounds, 3);
  EXPECT_EQ(sequences, (std::vector<uint64_t>{1, 2, 3}));
  EXPECT_EQ(std::string(reinterpret_cast<char*>(heap_), chunk.size()), chunk);
}

// A worker whose cursor is impossible ends the session instead of being believed.
TEST_F(CommandForwarderTest, NoticesImpossibleCursor) {
  reinterpret_cast<wire::RingShared*>(ring_.data())->consumed.store(uint64_t{1} << 40);
  EXPECT_FALSE(Feed(FrameBytes("x", Pattern(2 << 20))).ok());
}

}  // namespace
}  // namespace sluice::gateway
