// SPDX-License-Identifier: Apache-2.0
#include "daemon/gateway/auth.h"

#include <gtest/gtest.h>

#include "proto/network/token_text.h"

namespace sluice::gateway {
namespace {

constexpr char kTokenA[] = "0123456789abcdef0123456789abcdef";
constexpr char kTokenB[] = "fedcba9876543210fedcba9876543210";

// Only equal strings are equal, at every place and length.
TEST(AuthTest, ComparesWhole) {
  EXPECT_TRUE(ConstantTimeEqual(kTokenA, kTokenA));
  EXPECT_TRUE(ConstantTimeEqual("", ""));
  EXPECT_FALSE(ConstantTimeEqual("", "a"));
  EXPECT_FALSE(ConstantTimeEqual("a", ""));
  EXPECT_FALSE(ConstantTimeEqual("abc", "abcabc"));
  EXPECT_FALSE(ConstantTimeEqual("abcabc", "abc"));
  for (size_t i = 0; i < sizeof(kTokenA) - 1; ++i) {
    std::string other = kTokenA;
    other[i] ^= 1;
    EXPECT_FALSE(ConstantTimeEqual(kTokenA, other)) << i;
  }
}

// A token file holds one token a line, with blank lines and comments between.
TEST(AuthTest, ReadsTokenFile) {
  const auto tokens =
      wire::ParseTokens(std::string("# clients\n\n") + kTokenA + "  \r\n" + kTokenB);
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  EXPECT_EQ(*tokens, (std::vector<std::string>{kTokenA, kTokenB}));
}

// As editors of Windows write it: with a mark in front and two bytes for a line's end; in UTF-16 it
// is refused for what it is.
TEST(AuthTest, ReadsTokenFileOfWindows) {
  const auto tokens =
      wire::ParseTokens(std::string("\xef\xbb\xbf") + kTokenA + "\r\n" + kTokenB + "\r\n");
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  EXPECT_EQ(*tokens, (std::vector<std::string>{kTokenA, kTokenB}));
  std::string wide = "\xff\xfe";
  for (const char c : std::string_view(kTokenA)) wide += {c, '\0'};
  const auto refused = wire::ParseTokens(wide);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.status().message().find("UTF-16"), absl::string_view::npos) << refused.status();
}

// A line may name the tenant whose token it is; what only looks so is a token.
TEST(AuthTest, ReadsTenantsOfTokens) {
  std::vector<std::string> tenants;
  const auto tokens = wire::ParseTokens(
      std::string("@lab ") + kTokenA + "\n" + kTokenB + "\n@Lab " + kTokenB + "\n", 10, &tenants);
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  EXPECT_EQ(*tokens, (std::vector<std::string>{kTokenA, kTokenB, std::string("@Lab ") + kTokenB}));
  EXPECT_EQ(tenants, (std::vector<std::string>{"lab", "", ""}));
}

// A file without a token, or with one that could be guessed, is refused with the line.
TEST(AuthTest, RefusesWeakTokenFile) {
  EXPECT_FALSE(wire::ParseTokens("# nothing\n").ok());
  EXPECT_EQ(wire::ParseTokens(std::string(4097, 'x')).status().message(),
            "line 1 is longer than 4096 bytes: no request can carry it");
  const auto weak = wire::ParseTokens(std::string(kTokenA) + "\nsecret\n");
  ASSERT_FALSE(weak.ok());
  EXPECT_NE(weak.status().message().find("line 2"), absl::string_view::npos) << weak.status();
}

// Every configured token is accepted, by its number; anything else is not.
TEST(AuthTest, FindsToken) {
  const Authenticator authenticator({kTokenA, kTokenB});
  EXPECT_EQ(authenticator.FindToken(std::string("Bearer ") + kTokenA), 1u);
  EXPECT_EQ(authenticator.FindToken(std::string("Bearer ") + kTokenB), 2u);
  EXPECT_EQ(authenticator.FindToken(kTokenA), std::nullopt);
  EXPECT_EQ(authenticator.FindToken("Bearer "), std::nullopt);
  EXPECT_EQ(authenticator.FindToken(""), std::nullopt);
  EXPECT_EQ(authenticator.FindToken(std::string("Bearer ") + kTokenA + "0"), std::nullopt);
}

// Two connections of one host are one peer.
TEST(AuthTest, PeerHasNoPort) {
  EXPECT_EQ(PeerHost("ipv4:192.0.2.7:40000"), "192.0.2.7");
  EXPECT_EQ(PeerHost("ipv6:[2001:db8::1]:40000"), "[2001:db8::1]");
  EXPECT_EQ(PeerHost("ipv6:%5B2001:db8::1%5D:40000"), "[2001:db8::1]");
}

// Two long names that begin alike stay two names; a short one stays as it is.
TEST(AuthTest, LongNamesStayApart) {
  EXPECT_EQ(FittingName("CN=alice"), "CN=alice");
  const std::string unit(100, 'u');
  const std::string alice = FittingName("O=" + unit + ",CN=alice");
  const std::string mallory = FittingName("O=" + unit + ",CN=mallory");
  EXPECT_NE(alice, mallory);
  EXPECT_EQ(alice.size(), kMaxPeerName);
  EXPECT_EQ(alice, FittingName("O=" + unit + ",CN=alice"));
}

// A name that is what another one was cut to is another name.
TEST(AuthTest, CutNamesCannotBeTaken) {
  const std::string alice = FittingName("O=" + std::string(100, 'u') + ",CN=alice");
  EXPECT_NE(FittingName(alice), alice);
  EXPECT_EQ(FittingName(alice).size(), kMaxPeerName);
  EXPECT_EQ(FittingName(std::string(kMaxPeerName, 'u')), std::string(kMaxPeerName, 'u'));
}

// A token's name is a part of its SHA-256, wherever it stands, and nothing of itself.
TEST(AuthTest, TokensAreNamedByTheirHash) {
  EXPECT_EQ(TokenName(kTokenA), "token 3eb1bd439947");
  EXPECT_EQ(TokenName(kTokenB), "token 4ba68aa8767b");
}

}  // namespace
}  // namespace sluice::gateway
