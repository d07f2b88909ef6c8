// SPDX-License-Identifier: Apache-2.0
#include "daemon/gateway/reply_forwarder.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include "tests/unit/gateway/ring_memory.h"

namespace sluice::gateway {
namespace {

constexpr size_t kHeapBytes = 8 << 20;

class ReplyForwarderTest : public testing::Test {
 protected:
  ReplyForwarderTest() { EXPECT_TRUE(heap_.Add(1, memory_.Duplicate(), kHeapBytes).ok()); }

  // Forwards a frame as the worker sends it.
  absl::Status Forward(const v1::Reply& reply, uint32_t flags, const wire::BulkSpan& bulk,
                       std::string_view payload = {}) {
    const std::string message = reply.SerializeAsString();
    wire::FrameHeader header = {};
    header.message_bytes = static_cast<uint32_t>(message.size());
    header.payload_bytes = payload.size();
    header.flags = flags;
    header.bulk_segment = bulk.segment;
    header.bulk_offset = bulk.offset;
    header.bulk_bytes = bulk.size;
    absl::Status status;
    wire::CutFrame(header, message, payload, wire::kMaxPieceBody,
                   [&](const wire::PieceHeader& piece, std::string_view a, std::string_view b,
                       std::string_view c) {
                     std::string body;
                     body.append(a).append(b).append(c);
                     status = forwarder_.Forward(piece, &body);
                     return status.ok();
                   });
    return status;
  }

  bool Receive(OutgoingPieces* pieces) {
    wire::MessageReader reader;
    const grpc::ByteBuffer message = pieces->Take();
    EXPECT_LE(message.Length(), 3u << 20);
    uint32_t field = 0;
    EXPECT_TRUE(reader.Reset(message));
    EXPECT_EQ(reader.NextField(&field), wire::MessageReader::Step::kField);
    EXPECT_EQ(field, wire::kPiecesField);
    EXPECT_TRUE(assembler_
                    .Feed(reader.Rest(),
                          [this](wire::Frame& frame) { frames_.push_back(std::move(frame)); })
                    .ok());
    return accepts_;
  }
  void Flush() {
    if (forwarder_.collected().bytes() > 0) Receive(&forwarder_.collected());
  }

  static v1::Reply ReadData(uint64_t event_id, uint64_t offset, uint64_t size) {
    v1::Reply reply;
    reply.mutable_read_data()->set_event_id(event_id);
    reply.mutable_read_data()->set_offset(offset);
    reply.mutable_read_data()->set_size(size);
    return reply;
  }
  static v1::Reply Grant(uint64_t event_id, uint64_t offset, uint64_t size) {
    v1::Reply reply;
    reply.mutable_grant()->set_event_id(event_id);
    reply.mutable_grant()->set_offset(offset);
    reply.mutable_grant()->set_size(size);
    return reply;
  }

  TestMemory memory_{kHeapBytes};
  HeapMap heap_;
  GrantTable grants_;
  bool accepts_ = true;
  wire::FrameAssembler assembler_;
  std::vector<wire::Frame> frames_;
  ReplyForwarder forwarder_{&heap_, &grants_,
                            [this](OutgoingPieces* pieces) { return Receive(pieces); }};
};

// A frame passes unchanged, but says nothing of places on this machine.
TEST_F(ReplyForwarderTest, PassesFramesOn) {
  v1::Reply reply;
  reply.mutable_answer()->set_sequence(5);
  const std::string payload = Pattern(100'000);
  ASSERT_TRUE(Forward(reply, wire::kFrameCreatesMemory, {1, 4096, 10}, payload).ok());
  Flush();
  ASSERT_EQ(frames_.size(), 1u);
  EXPECT_EQ(frames_[0].message(), reply.SerializeAsString());
  EXPECT_EQ(frames_[0].payload(), payload);
  EXPECT_EQ(frames_[0].bulk().segment, 0u);
  EXPECT_EQ(frames_[0].bulk().offset, 0u);
}

// Read data takes its bytes along, in parts of at most a MiB that together are the whole.
TEST_F(ReplyForwarderTest, BringsReadData) {
  const std::string bytes = Pattern(3'500'001);
  std::memcpy(memory_.data() + 4096, bytes.data(), bytes.size());
  ASSERT_TRUE(
      Forward(ReadData(9, 700, bytes.size()), wire::kFrameReadData, {1, 4096, bytes.size()}).ok());
  Flush();
  std::string got;
  for (const wire::Frame& frame : frames_) {
    v1::Reply reply;
    ASSERT_TRUE(reply.ParseFromString(std::string(frame.message())));
    ASSERT_TRUE(reply.has_read_data());
    EXPECT_EQ(reply.read_data().event_id(), 9u);
    EXPECT_EQ(reply.read_data().offset(), 700 + got.size());
    EXPECT_EQ(reply.read_data().size(), frame.payload().size());
    EXPECT_LE(frame.payload().size(), size_t{1} << 20);
    EXPECT_EQ(frame.header().flags, wire::kFrameReadData);
    got += frame.payload();
  }
  EXPECT_EQ(frames_.size(), 4u);
  EXPECT_EQ(got, bytes);
}

// A grant is remembered before the client hears of it.
TEST_F(ReplyForwarderTest, RemembersGrants) {
  ASSERT_TRUE(Forward(Grant(9, 0, 100), wire::kFrameGrant, {1, 8192, 100}).ok());
  wire::BulkSpan span;
  const MappedSpan mapped = grants_.Find(9, 0, 100, &span);
  ASSERT_NE(mapped.data, nullptr);
  mapped.data[0] = 17;
  EXPECT_EQ(memory_.data()[8192], 17);
  Flush();
  ASSERT_EQ(frames_.size(), 1u);
  EXPECT_EQ(frames_[0].bulk().segment, 0u);
}

// A worker that names memory outside its heap, or less than it speaks of, ends its session.
TEST_F(ReplyForwarderTest, RefusesSpansOutside) {
  EXPECT_FALSE(Forward(ReadData(1, 0, 100), wire::kFrameReadData, {1, kHeapBytes - 10, 100}).ok());
  EXPECT_FALSE(Forward(ReadData(1, 0, 100), wire::kFrameReadData, {1, 0, 99}).ok());
  EXPECT_FALSE(Forward(Grant(1, 0, 100), wire::kFrameGrant, {1, kHeapBytes - 10, 100}).ok());
  EXPECT_FALSE(Forward(Grant(1, 0, 100), wire::kFrameGrant, {0, 0, 100}).ok());
  EXPECT_FALSE(Forward(Grant(1, 0, 100), wire::kFrameReadData, {1, 0, 100}).ok());
  EXPECT_EQ(grants_.size(), 0u);
}

// Pieces that make no frames end the session.
TEST_F(ReplyForwarderTest, RefusesPiecesThatMakeNoFrames) {
  std::string body(64, '\0');
  EXPECT_FALSE(forwarder_.Forward({64, wire::kPieceLast}, &body).ok());
  EXPECT_TRUE(forwarder_.Forward({64, wire::kPieceFirst}, &body).ok());
  EXPECT_FALSE(forwarder_.Forward({64, wire::kPieceFirst}, &body).ok());
}

// Once the client is gone, forwarding a large read stops.
TEST_F(ReplyForwarderTest, StopsWhenNobodyTakes) {
  accepts_ = false;
  EXPECT_TRUE(
      absl::IsCancelled(Forward(ReadData(9, 0, 8 << 20), wire::kFrameReadData, {1, 0, 8 << 20})));
}

}  // namespace
}  // namespace sluice::gateway
