// SPDX-License-Identifier: Apache-2.0
#include "proto/network/message_reader.h"

#include <gtest/gtest.h>

#include "tests/unit/gateway/ring_memory.h"

namespace sluice::gateway {
namespace {

using Step = wire::MessageReader::Step;

// A field reads the same however gRPC has cut the message.
TEST(MessageReaderTest, ReadsAcrossSlices) {
  const std::string content = Pattern(1000);
  std::string message;
  wire::AppendVarint(9 << 3, &message);  // An unknown number: skipped.
  wire::AppendVarint(12345678, &message);
  wire::AppendStringField(7, "skipped", &message);
  wire::AppendStringField(wire::kPiecesField, content, &message);
  for (const size_t slice_bytes : {1u, 3u, 64u, 5000u}) {
    wire::MessageReader reader;
    ASSERT_TRUE(reader.Reset(Sliced(message, slice_bytes)));
    uint32_t field = 0;
    ASSERT_EQ(reader.NextField(&field), Step::kField);
    EXPECT_EQ(field, 7u);
    ASSERT_EQ(reader.NextField(&field), Step::kField);
    EXPECT_EQ(field, wire::kPiecesField);
    ASSERT_EQ(reader.left(), content.size());
    char start[10];
    ASSERT_TRUE(reader.Peek(start, sizeof(start)));
    EXPECT_EQ(std::string(start, 10), content.substr(0, 10));
    std::string scratch;
    EXPECT_EQ(std::string(reader.Contiguous(100, &scratch), 100), content.substr(0, 100));
    ASSERT_TRUE(reader.Skip(100));
    std::string parts;
    ASSERT_TRUE(reader.ForEachPart(
        500, [&](const char* part, size_t bytes) { parts.append(part, bytes); }));
    EXPECT_EQ(parts, content.substr(100, 500));
    EXPECT_EQ(reader.Rest(), content.substr(600));
    EXPECT_EQ(reader.NextField(&field), Step::kEnd);
  }
}

// Nothing can be read beyond the field, also where the message goes on.
TEST(MessageReaderTest, StaysInsideTheField) {
  std::string message;
  wire::AppendStringField(1, "abc", &message);
  wire::AppendStringField(2, "defghi", &message);
  wire::MessageReader reader;
  ASSERT_TRUE(reader.Reset(Sliced(message, 4)));
  uint32_t field = 0;
  ASSERT_EQ(reader.NextField(&field), Step::kField);
  char out[8];
  std::string scratch;
  EXPECT_FALSE(reader.Peek(out, 4));
  EXPECT_FALSE(reader.Read(out, 4));
  EXPECT_FALSE(reader.Skip(4));
  EXPECT_EQ(reader.Contiguous(4, &scratch), nullptr);
  EXPECT_FALSE(reader.ForEachPart(4, [](const char*, size_t) {}));
  EXPECT_EQ(reader.left(), 3u);
}

// A length beyond the message, a number without an end and an unknown wire type are malformed, not
// read.
TEST(MessageReaderTest, RefusesMalformedMessages) {
  const std::string malformed[] = {
      std::string("\x12\x05"
                  "abc"),  // 5 bytes announced, 3 there
      std::string("\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11),  // a length of 2^64 - 1
      std::string("\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12),
      std::string("\x80"),      // a tag cut short
      std::string("\x13"),      // a group
      std::string("\x09\x01"),  // a fixed64 cut short
      std::string("\x02\x01"
                  "a",
                  3),  // field number 0
  };
  for (const std::string& message : malformed) {
    wire::MessageReader reader;
    ASSERT_TRUE(reader.Reset(Sliced(message, 2)));
    uint32_t field = 0;
    EXPECT_EQ(reader.NextField(&field), Step::kMalformed) << testing::PrintToString(message);
  }
}

// A number is found among fields of every kind; what is malformed is refused, not read.
TEST(MessageReaderTest, FindsANumber) {
  std::string message(
      "\x08\x07\x11"
      "12345678"
      "\x1d"
      "1234",
      16);
  wire::AppendStringField(2, "abc", &message);
  message += std::string("\x18\x80\x02", 3);
  uint64_t value = 0;
  EXPECT_TRUE(wire::FindVarintField(message, 3, &value));
  EXPECT_EQ(value, 256u);
  EXPECT_TRUE(wire::FindVarintField(message, 9, &value));
  EXPECT_EQ(value, 0u);
  for (const char* bad : {"\x18", "\x18\x80",
                          "\x12\x05"
                          "ab",
                          "\x11"
                          "123",
                          "\x1b"})
    EXPECT_FALSE(wire::FindVarintField(bad, 3, &value)) << bad;
}

// A message without bytes has no fields.
TEST(MessageReaderTest, EmptyMessageEnds) {
  wire::MessageReader reader;
  const grpc::Slice slices[] = {grpc::Slice(), grpc::Slice()};
  ASSERT_TRUE(reader.Reset(grpc::ByteBuffer(slices, 2)));
  uint32_t field = 0;
  EXPECT_EQ(reader.NextField(&field), Step::kEnd);
  EXPECT_EQ(reader.left(), 0u);
}

}  // namespace
}  // namespace sluice::gateway
