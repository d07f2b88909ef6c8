// SPDX-License-Identifier: Apache-2.0
#include "daemon/gateway/front/http2_gate.h"

#include <gtest/gtest.h>

#include <string>

namespace sluice::gateway {
namespace {

constexpr uint8_t kData = 0, kHeaders = 1, kReset = 3, kSettings = 4, kPing = 6, kWindow = 8,
                  kContinuation = 9;
constexpr uint8_t kEndStream = 1, kEndHeaders = 4;

std::string Frame(uint8_t type, uint8_t flags, uint32_t stream, size_t size = 0) {
  const auto byte = [](uint64_t value, int shift) { return static_cast<char>(value >> shift); };
  return std::string{byte(size, 16),   byte(size, 8),   byte(size, 0),
                     byte(type, 0),    byte(flags, 0),  byte(stream, 24),
                     byte(stream, 16), byte(stream, 8), byte(stream, 0)} +
         std::string(size, 'x');
}

class Http2GateTest : public testing::Test {
 protected:
  Http2Gate::Verdict Send(const std::string& bytes) { return gate_.OnClient(bytes, now_ms_); }

  SharedBudget shared_{kSharedCalls};
  Http2Gate gate_{&shared_};
  int64_t now_ms_ = 1000;
};

// The bytes of a client of gRPC's are passed on at once, in whatever pieces they come.
TEST_F(Http2GateTest, ClientsPass) {
  gate_.Trust();
  std::string bytes = Frame(kSettings, 0, 0, 12) + Frame(kSettings, 1, 0);
  for (uint32_t stream = 1; stream < 60; stream += 2)
    bytes += Frame(kHeaders, kEndHeaders, stream, 200) + Frame(kData, 0, stream, 100'000) +
             Frame(kWindow, 0, 0, 4);
  for (size_t at = 0; at < bytes.size(); at += 997) {
    const std::string piece = bytes.substr(at, 997);
    const Http2Gate::Verdict verdict = Send(piece);
    ASSERT_EQ(verdict.passed, piece.size());
    ASSERT_EQ(verdict.wait_ms, 0);
  }
  EXPECT_EQ(gate_.offence(), "");
}

// Calls begun and given up without end are held up, the more so of who is not known; the rest of
// what came stays behind.
TEST_F(Http2GateTest, RapidResetWaits) {
  std::string flood;
  for (uint32_t stream = 1; stream < 8000; stream += 2)
    flood += Frame(kHeaders, kEndHeaders, stream, 20) + Frame(kReset, 0, stream, 4);
  const Http2Gate::Verdict stranger = Send(flood);
  EXPECT_GT(stranger.wait_ms, 0);
  EXPECT_LT(stranger.passed, 20u * 50);
  Http2Gate known(&shared_);
  known.Trust();
  const Http2Gate::Verdict member = known.OnClient(flood, now_ms_);
  EXPECT_GT(member.wait_ms, 0);
  EXPECT_LT(member.passed, flood.size() / 2);
  EXPECT_EQ(known.offence(), "");
}

// The wait ends, and a client that has slowed down goes on.
TEST_F(Http2GateTest, WaitingHelps) {
  std::string pings;
  for (int i = 0; i < 1000; ++i) pings += Frame(kPing, 0, 0, 8);
  Http2Gate::Verdict verdict = Send(pings);
  ASSERT_GT(verdict.wait_ms, 0);
  for (int rounds = 0; rounds < 2000 && verdict.passed < pings.size(); ++rounds) {
    pings.erase(0, verdict.passed);
    now_ms_ += verdict.wait_ms;
    verdict = Send(pings);
  }
  EXPECT_EQ(verdict.passed, pings.size());
}

// More calls at once than gRPC's settings allow are no client's; those that have ended, by either
// end, count no more.
TEST_F(Http2GateTest, OpenCallsAreBounded) {
  gate_.Trust();
  uint32_t stream = 1;
  for (int i = 0; i < 500; ++i, stream += 2) {
    now_ms_ += 100;
    Send(Frame(kHeaders, kEndHeaders, stream));
    gate_.OnServer(Frame(kHeaders, kEndHeaders | kEndStream, stream));
  }
  EXPECT_EQ(gate_.offence(), "");
  for (int i = 0; i < 200; ++i, stream += 2) {
    now_ms_ += 100;
    Send(Frame(kHeaders, kEndHeaders, stream));
  }
  EXPECT_NE(gate_.offence(), "");
}

// Headers without an end are no client's, in large frames and in empty ones.
TEST_F(Http2GateTest, HeadersWithoutEnd) {
  gate_.Trust();
  Send(Frame(kHeaders, 0, 1, 10));
  for (int i = 0; i < 3; ++i) Send(Frame(kContinuation, 0, 1, 16'000));
  EXPECT_EQ(gate_.offence(), "");
  Send(Frame(kContinuation, 0, 1, 20'000));
  EXPECT_NE(gate_.offence(), "");
  Http2Gate empty(&shared_);
  empty.OnClient(Frame(kHeaders, 0, 1), now_ms_);
  for (int i = 0; i < 16; ++i) empty.OnClient(Frame(kContinuation, 0, 1), now_ms_);
  EXPECT_NE(empty.offence(), "");
}

// A peer that is not known yet may send few bytes.
TEST_F(Http2GateTest, NewcomersSendLittle) {
  EXPECT_EQ(Send(Frame(kHeaders, kEndHeaders, 1, 300)).wait_ms, 0);
  EXPECT_GT(Send(Frame(kData, 0, 1, 200'000)).wait_ms, 1000);
}

}  // namespace
}  // namespace sluice::gateway
