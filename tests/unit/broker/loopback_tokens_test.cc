// SPDX-License-Identifier: Apache-2.0
#include "proto/network/loopback_tokens.h"

#include <gtest/gtest.h>

namespace sluice::broker {
namespace {

constexpr char kPeer[] = "ipv4:127.0.0.1:50000";
constexpr char kOther[] = "ipv4:127.0.0.1:50001";

std::string TextOf(const absl::StatusOr<wire::LoopbackToken>& token) {
  return wire::LoopbackTokenText(token->data());
}

// A token admits the connection that shows it first, again and again, and no other one.
TEST(LoopbackTokensTest, BoundToTheFirstConnection) {
  wire::LoopbackTokens tokens;
  const std::string text = TextOf(tokens.Issue(1));
  EXPECT_TRUE(tokens.Admit(text, kPeer));
  EXPECT_TRUE(tokens.Admit(text, kPeer));
  EXPECT_FALSE(tokens.Admit(text, kOther));
}

// A text that is no token, or not one of these, or nearly one, admits nobody, and binds nothing.
TEST(LoopbackTokensTest, WrongTokensAdmitNobody) {
  wire::LoopbackTokens tokens;
  const std::string text = TextOf(tokens.Issue(1));
  wire::LoopbackTokens others;
  EXPECT_FALSE(tokens.Admit("", kOther));
  EXPECT_FALSE(tokens.Admit(TextOf(others.Issue(1)), kOther));
  EXPECT_FALSE(tokens.Admit(text.substr(1), kOther));
  EXPECT_FALSE(tokens.Admit(text + "0", kOther));
  std::string near = text;
  near.back() = near.back() == '0' ? '1' : '0';
  EXPECT_FALSE(tokens.Admit(near, kOther));
  EXPECT_FALSE(tokens.Admit(text, ""));
  EXPECT_TRUE(tokens.Admit(text, kPeer));
}

// A listener that shows the first half is shown the second, which nobody else learns; a listener
// that proves nothing is shown all of it.
TEST(LoopbackTokensTest, HalfIsAnsweredByTheOther) {
  wire::LoopbackTokens tokens;
  const auto token = tokens.Issue(1);
  const wire::LoopbackSecrets secrets = wire::SecretsOf(token->data(), wire::kTicketProves);
  EXPECT_EQ(secrets.token + secrets.proof, TextOf(token));
  EXPECT_EQ(secrets.token.size(), secrets.proof.size());
  const auto admitted = tokens.Admit(secrets.token, kPeer);
  ASSERT_TRUE(admitted.has_value());
  EXPECT_EQ(admitted->id, 1u);
  EXPECT_EQ(admitted->proof, secrets.proof);
  EXPECT_FALSE(tokens.Admit(secrets.token, kOther));
  EXPECT_FALSE(tokens.Admit(secrets.proof, kPeer));
  EXPECT_FALSE(tokens.Admit(secrets.token.substr(1), kPeer));
  const wire::LoopbackSecrets old = wire::SecretsOf(token->data(), 0);
  EXPECT_EQ(old.proof, "");
  EXPECT_EQ(tokens.Admit(old.token, kPeer)->proof, "");
}

// Once revoked it is nothing any more; others stay what they are, and name who has them.
TEST(LoopbackTokensTest, RevokedIsGone) {
  wire::LoopbackTokens tokens;
  const std::string first = TextOf(tokens.Issue(1));
  const std::string second = TextOf(tokens.Issue(2));
  EXPECT_NE(first, second);
  EXPECT_EQ(tokens.Admit(first, kPeer)->id, 1u);
  tokens.Revoke(1);
  EXPECT_FALSE(tokens.Admit(first, kPeer));
  EXPECT_EQ(tokens.Admit(second, kPeer)->id, 2u);
}

}  // namespace
}  // namespace sluice::broker
