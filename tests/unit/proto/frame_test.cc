// SPDX-License-Identifier: Apache-2.0
#include "proto/frame.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace sluice::wire {
namespace {

FrameHeader HeaderFor(std::string_view message, std::string_view payload, uint64_t sequence = 1) {
  FrameHeader header = {};
  header.sequence = sequence;
  header.message_bytes = static_cast<uint32_t>(message.size());
  header.payload_bytes = payload.size();
  return header;
}

std::string Piece(uint32_t flags, std::string_view body, uint32_t claimed_bytes) {
  const PieceHeader header = {claimed_bytes, flags};
  std::string piece(reinterpret_cast<const char*>(&header), sizeof(header));
  piece += body;
  piece.append((8 - piece.size() % 8) % 8, '\0');
  return piece;
}
std::string Piece(uint32_t flags, std::string_view body) {
  return Piece(flags, body, static_cast<uint32_t>(body.size()));
}

std::string BodyOf(const FrameHeader& header, std::string_view rest) {
  return std::string(reinterpret_cast<const char*>(&header), sizeof(header)) + std::string(rest);
}

absl::Status FeedAll(std::string_view pieces, std::vector<std::string>* messages = nullptr) {
  FrameAssembler assembler;
  return assembler.Feed(pieces, [&](Frame& frame) {
    if (messages != nullptr) messages->push_back(std::string(frame.message()));
  });
}

constexpr uint32_t kBoth = kPieceFirst | kPieceLast;

// Frames of every size around the edges of pieces come back whole, with header, message, payload.
TEST(FrameTest, RoundTripAtPieceEdges) {
  for (const size_t message_size : {size_t{0}, size_t{1}, size_t{7}, size_t{8}, kMaxPieceBody - 49,
                                    kMaxPieceBody - 48, kMaxPieceBody - 47, 3 * kMaxPieceBody}) {
    for (const size_t payload_size : {size_t{0}, size_t{1}, kMaxPieceBody, kMaxPieceBody + 1}) {
      const std::string message(message_size, 'm');
      const std::string payload(payload_size, 'p');
      FrameHeader header = HeaderFor(message, payload, 42);
      header.flags = kFrameGrant;
      header.bulk_segment = 3;
      header.bulk_offset = 4096;
      header.bulk_bytes = 77;
      std::string pieces;
      AppendFrame(header, message, payload, &pieces);
      EXPECT_EQ(pieces.size() % 8, 0u);
      int frames = 0;
      FrameAssembler assembler;
      EXPECT_TRUE(assembler
                      .Feed(pieces,
                            [&](Frame& frame) {
                              ++frames;
                              EXPECT_EQ(frame.header().sequence, 42u);
                              EXPECT_EQ(frame.header().flags, kFrameGrant);
                              EXPECT_TRUE(frame.message() == message);
                              EXPECT_TRUE(frame.payload() == payload);
                              EXPECT_EQ(frame.bulk().segment, 3u);
                              EXPECT_EQ(frame.bulk().offset, 4096u);
                              EXPECT_EQ(frame.bulk().size, 77u);
                            })
                      .ok());
      EXPECT_EQ(frames, 1);
    }
  }
}

// Frames that follow each other come out one by one, in order.
TEST(FrameTest, FramesFollowEachOther) {
  std::string pieces;
  for (const char* message : {"one", "two", "three"}) {
    AppendFrame(HeaderFor(message, ""), message, "", &pieces);
  }
  std::vector<std::string> messages;
  EXPECT_TRUE(FeedAll(pieces, &messages).ok());
  EXPECT_EQ(messages, (std::vector<std::string>{"one", "two", "three"}));
}

// Empty pieces in the middle of a frame add nothing and break nothing.
TEST(FrameTest, EmptyPiecesAreHarmless) {
  const std::string body = BodyOf(HeaderFor("abc", ""), "abc");
  std::vector<std::string> messages;
  EXPECT_TRUE(
      FeedAll(Piece(kPieceFirst, "") + Piece(0, body) + Piece(0, "") + Piece(kPieceLast, ""),
              &messages)
          .ok());
  EXPECT_EQ(messages, std::vector<std::string>{"abc"});
}

// Everything that is no frame is a violation: no header, lengths that do not add up, wrong order,
// unknown flags, pieces over the limit, input that ends early.
TEST(FrameTest, MalformedShapesAreRefused) {
  const FrameHeader good = HeaderFor("abc", "");
  FrameHeader long_message = good;
  long_message.message_bytes = 4;
  FrameHeader short_message = good;
  short_message.message_bytes = 2;
  FrameHeader huge_message = good;
  huge_message.message_bytes = UINT32_MAX;
  FrameHeader huge_payload = good;
  huge_payload.payload_bytes = UINT64_MAX;
  FrameHeader wrapping = good;  // message + payload == 3 modulo 2^64.
  wrapping.message_bytes = 10;
  wrapping.payload_bytes = uint64_t{0} - 7;
  const std::string whole = Piece(kBoth, BodyOf(good, "abc"));
  const std::vector<std::pair<const char*, std::string>> cases = {
      {"no header", Piece(kBoth, "short")},
      {"empty frame", Piece(kBoth, "")},
      {"message too long", Piece(kBoth, BodyOf(long_message, "abc"))},
      {"message too short", Piece(kBoth, BodyOf(short_message, "abc"))},
      {"huge message", Piece(kBoth, BodyOf(huge_message, "abc"))},
      {"huge payload", Piece(kBoth, BodyOf(huge_payload, "abc"))},
      {"wrapping lengths", Piece(kBoth, BodyOf(wrapping, "abc"))},
      {"piece outside a frame", Piece(0, "abc")},
      {"last outside a frame", Piece(kPieceLast, "abc")},
      {"frame in a frame", Piece(kPieceFirst, "abc") + whole},
      {"unknown flag", Piece(kBoth | 4, BodyOf(good, "abc"))},
      {"all flags", Piece(UINT32_MAX, BodyOf(good, "abc"))},
      {"piece over the limit", Piece(kBoth, std::string(kMaxPieceBody + 8, 'x'))},
      {"claimed length over the limit", Piece(kBoth, "abc", UINT32_MAX)},
      {"header cut short", whole.substr(0, 4)},
      {"body cut short", whole.substr(0, whole.size() - 8)},
  };
  for (const auto& [what, pieces] : cases) EXPECT_FALSE(FeedAll(pieces).ok()) << what;
  EXPECT_TRUE(FeedAll(whole).ok());
}

// Of a frame that is larger than its receiver takes only the header comes out, whatever the pieces
// it came in, and the next frame is whole.
TEST(FrameTest, OfATooLargeFrameOnlyTheHeaderIsKept) {
  constexpr uint64_t kMost = 1000;
  for (const size_t piece : {size_t{1}, size_t{47}, size_t{48}, size_t{500}, kMaxPieceBody}) {
    FrameAssembler assembler(kMost);
    uint64_t sequence = 0;
    for (const size_t message_size : {kMost - 48, kMost - 47, size_t{200'000}, kMost - 48}) {
      const std::string message(message_size, 'm');
      std::string pieces;
      CutFrame(HeaderFor(message, "", ++sequence), message, "", piece,
               [&](const PieceHeader& header, std::string_view a, std::string_view b,
                   std::string_view c) {
                 pieces += Piece(header.flags, std::string(a) + std::string(b) + std::string(c));
                 return true;
               });
      int frames = 0;
      EXPECT_TRUE(assembler
                      .Feed(pieces,
                            [&](Frame& frame) {
                              ++frames;
                              EXPECT_EQ(frame.header().sequence, sequence);
                              EXPECT_EQ(frame.too_large(), message_size + 48 > kMost);
                              EXPECT_TRUE(frame.message() == (frame.too_large() ? "" : message));
                            })
                      .ok());
      EXPECT_EQ(frames, 1);
    }
  }
}

// A sender that stops in the middle is obeyed: CutFrame emits nothing more.
TEST(FrameTest, CutFrameStopsWhenTold) {
  int pieces = 0;
  const std::string message(4 * kMaxPieceBody, 'm');
  EXPECT_FALSE(CutFrame(HeaderFor(message, ""), message, "", kMaxPieceBody,
                        [&](const PieceHeader&, std::string_view, std::string_view,
                            std::string_view) { return ++pieces < 2; }));
  EXPECT_EQ(pieces, 2);
}

}  // namespace
}  // namespace sluice::wire
