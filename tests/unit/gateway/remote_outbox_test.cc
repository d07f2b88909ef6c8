// SPDX-License-Identifier: Apache-2.0
#include "client_icd/remote/remote_outbox.h"

#include <gtest/gtest.h>

#include "proto/network/transport_arguments.h"
#include "tests/unit/gateway/ring_memory.h"

namespace sluice::gateway {
namespace {

wire::FrameHeader HeaderFor(std::string_view message, std::string_view payload, uint64_t sequence) {
  wire::FrameHeader header = {};
  header.sequence = sequence;
  header.message_bytes = static_cast<uint32_t>(message.size());
  header.payload_bytes = payload.size();
  return header;
}

// Frames come out whole and in order, small ones many to a message, large ones in several, none
// beyond what the peer takes.
TEST(RemoteOutboxTest, CutsFramesIntoMessages) {
  client::RemoteOutbox outbox;
  const std::string large = Pattern(5 << 20);
  for (uint64_t i = 1; i <= 100; ++i) outbox.Append(HeaderFor("small", "", i), "small", "");
  outbox.Append(HeaderFor("large", large, 101), "large", large);
  outbox.Append(HeaderFor("small", "", 102), "small", "");
  wire::FrameAssembler assembler;
  uint64_t expected = 1;
  int messages = 0;
  grpc::Slice pieces;
  while (outbox.Take(&pieces)) {
    ++messages;
    EXPECT_LT(pieces.size(), size_t{wire::kMaxMessageBytes});
    ASSERT_TRUE(assembler
                    .Feed({reinterpret_cast<const char*>(pieces.begin()), pieces.size()},
                          [&](wire::Frame& frame) {
                            EXPECT_EQ(frame.header().sequence, expected);
                            EXPECT_EQ(frame.payload().size(), expected == 101 ? large.size() : 0);
                            if (expected == 101) {
                              EXPECT_EQ(frame.payload(), large);
                            }
                            ++expected;
                          })
                    .ok());
    outbox.Written();
  }
  EXPECT_EQ(expected, 103u);
  EXPECT_LE(messages, 7);
  EXPECT_EQ(outbox.bytes(), 0u);
}

// One message at a time is with gRPC.
TEST(RemoteOutboxTest, TakesOneAtATime) {
  client::RemoteOutbox outbox;
  grpc::Slice pieces;
  EXPECT_FALSE(outbox.Take(&pieces));
  outbox.Append(HeaderFor("a", "", 1), "a", "");
  EXPECT_TRUE(outbox.Take(&pieces));
  EXPECT_TRUE(outbox.writing());
  outbox.Append(HeaderFor("b", "", 2), "b", "");
  EXPECT_FALSE(outbox.Take(&pieces));
  outbox.Written();
  EXPECT_TRUE(outbox.Take(&pieces));
}

}  // namespace
}  // namespace sluice::gateway
