// SPDX-License-Identifier: Apache-2.0
#include "proto/broker_messages.h"

#include <gtest/gtest.h>

#include <string>

#include "broker/base/peer_version.h"

namespace sluice::broker {
namespace {

// A made message parses as what it is, and its strings are terminated.
TEST(BrokerMessagesTest, RoundTrip) {
  auto sent = wire::MakeMessage<wire::Hello>();
  wire::SetString(sent.features, "sync");
  wire::SetString(sent.process_name, "app");
  wire::Hello received;
  ASSERT_TRUE(wire::ParseMessage(&sent, sizeof(sent), &received));
  EXPECT_STREQ(received.features, "sync");
  EXPECT_TRUE(wire::IsTerminated(received.process_name));
  EXPECT_EQ(wire::PeekMessageType(&sent, sizeof(sent)),
            static_cast<uint16_t>(wire::MessageType::kHello));
}

// A peer's version is found among its features; what is none, or would be shown to a person as
// something else, is not.
TEST(PeerVersionTest, FoundAmongFeatures) {
  EXPECT_EQ(VersionIn("sync,version:1.2.3~rc1,x"), "1.2.3~rc1");
  EXPECT_EQ(VersionIn(VersionFeature()), std::string_view(VersionFeature()).substr(8));
  for (const char* none : {"", "sync", "version:", "version", "a-version:1", "version:1 2",
                           "version:1\n2", "version:111111111122222222223333333333444"})
    EXPECT_EQ(VersionIn(none), "") << none;
}

// The text that a person reads names both versions, or says that the peer tells none.
TEST(PeerVersionTest, AdviceNamesBoth) {
  // The library has it; kVersion of this file has none.
  const std::string own(VersionIn(VersionFeature()));
  EXPECT_EQ(
      VersionAdvice("client", "daemon", "9.9.9"),
      "this client is Sluice " + own + ", the daemon is Sluice 9.9.9: update the older of the two");
  EXPECT_EQ(VersionAdvice("client", "daemon", own),
            "this client and the daemon are two builds of Sluice " + own +
                ": install both from one build");
  EXPECT_NE(VersionAdvice("daemon", "client", "").find("the client tells no version: update"),
            std::string::npos);
}

// A packet that is cut short, too long, of another type, size or magic is none.
TEST(BrokerMessagesTest, WrongHeadersAreRefused) {
  const auto good = wire::MakeMessage<wire::OpenSession>();
  wire::OpenSession out;
  EXPECT_FALSE(wire::ParseMessage(&good, sizeof(good) - 1, &out));
  EXPECT_FALSE(wire::ParseMessage(&good, 0, &out));
  char longer[sizeof(good) + 1] = {};
  std::memcpy(longer, &good, sizeof(good));
  EXPECT_FALSE(wire::ParseMessage(longer, sizeof(longer), &out));
  for (int field = 0; field < 3; ++field) {
    wire::OpenSession bad = good;
    if (field == 0) bad.header.magic ^= 1;
    if (field == 1) bad.header.type = static_cast<uint16_t>(wire::MessageType::kHello);
    if (field == 2) bad.header.size -= 1;
    EXPECT_FALSE(wire::ParseMessage(&bad, sizeof(bad), &out)) << field;
  }
  wire::Hello hello;
  EXPECT_FALSE(wire::ParseMessage(&good, sizeof(good), &hello));
}

// A packet shorter than a header, or one whose header lies about the size, has no type.
TEST(BrokerMessagesTest, PeekNeedsASoundHeader) {
  const auto good = wire::MakeMessage<wire::StatsRequest>();
  EXPECT_EQ(wire::PeekMessageType(&good, 7), 0);
  EXPECT_EQ(wire::PeekMessageType(&good, 0), 0);
  auto bad = good;
  bad.header.size = 9;
  EXPECT_EQ(wire::PeekMessageType(&bad, sizeof(bad)), 0);
}

// A string without its NUL is recognised; one that does not fit is cut, and terminated.
TEST(BrokerMessagesTest, StringsAreBounded) {
  auto message = wire::MakeMessage<wire::Terminate>();
  std::memset(message.reason, 'x', sizeof(message.reason));
  EXPECT_FALSE(wire::IsTerminated(message.reason));
  wire::SetString(message.reason, std::string(500, 'y'));
  ASSERT_TRUE(wire::IsTerminated(message.reason));
  EXPECT_EQ(std::strlen(message.reason), sizeof(message.reason) - 1);
  wire::SetString(message.reason, "");
  EXPECT_STREQ(message.reason, "");
}

}  // namespace
}  // namespace sluice::broker
