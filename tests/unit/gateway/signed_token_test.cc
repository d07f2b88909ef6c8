// SPDX-License-Identifier: Apache-2.0
//
// Tokens that a cluster signs: what holds, and what somebody may have made of one.
#include "proto/network/signed_token.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace sluice::gateway {
namespace {

using wire::IsSignedToken;
using wire::MakeTokenKeys;
using wire::SignToken;
using wire::TokenKeyPair;
using wire::TokenKeys;
using wire::TokenTerms;

constexpr int64_t kNow = 1'795'000'000;

TokenTerms Lab() {
  TokenTerms terms;
  terms.tenant = "lab";
  terms.share = 25;
  terms.max_sessions = 8;
  terms.memory_bytes = 4ULL << 30;
  terms.expires = kNow + 60;
  return terms;
}

class SignedTokenTest : public testing::Test {
 protected:
  std::string Sign(const TokenTerms& terms = Lab()) { return *SignToken(terms, pair_.private_key); }
  absl::Status Refusal(const std::string& token, int64_t now = kNow) {
    return keys_.Check(token, now).status();
  }

  TokenKeyPair pair_ = *MakeTokenKeys();
  TokenKeys keys_ = *TokenKeys::Read(pair_.public_key);
};

TEST_F(SignedTokenTest, WhatIsSignedHolds) {
  const std::string token = Sign();
  EXPECT_TRUE(IsSignedToken(token));
  EXPECT_EQ(token.find_first_of("= \n"), std::string::npos);
  const auto terms = keys_.Check(token, kNow);
  ASSERT_TRUE(terms.ok()) << terms.status();
  EXPECT_EQ(terms->tenant, "lab");
  EXPECT_EQ(terms->share, 25u);
  EXPECT_EQ(terms->max_sessions, 8u);
  EXPECT_EQ(terms->memory_bytes, 4ULL << 30);
  EXPECT_EQ(terms->expires, kNow + 60);
  EXPECT_EQ(terms->nonce.size(), 16u);
  EXPECT_NE(keys_.Check(Sign(), kNow)->nonce, terms->nonce);
}

TEST_F(SignedTokenTest, AnExpiredOneIsRefused) {
  const std::string token = Sign();
  EXPECT_TRUE(Refusal(token, kNow + 59).ok());
  EXPECT_EQ(Refusal(token, kNow + 60).code(), absl::StatusCode::kUnauthenticated);
  EXPECT_NE(Refusal(token, kNow + 90).message().find("expired 30 s ago"), std::string::npos);
}

// Any of several keys may have signed, so that they can be changed one after the other.
TEST_F(SignedTokenTest, KeysOfOthersAreRefused) {
  const TokenKeyPair other = *MakeTokenKeys();
  const std::string token = *SignToken(Lab(), other.private_key);
  EXPECT_EQ(Refusal(token).code(), absl::StatusCode::kUnauthenticated);
  const TokenKeys both = *TokenKeys::Read(pair_.public_key + other.public_key);
  EXPECT_TRUE(both.Check(token, kNow).ok());
  EXPECT_TRUE(both.Check(Sign(), kNow).ok());
}

// No byte of it can be another, and nothing can be left out or put in.
TEST_F(SignedTokenTest, NothingOfItCanBeChanged) {
  const std::string token = Sign();
  for (size_t i = 0; i < token.size(); ++i) {
    for (const char c : {'A', 'b', '.', '\0', '='}) {
      std::string forged = token;
      if (forged[i] == c) continue;
      forged[i] = c;
      EXPECT_FALSE(Refusal(forged).ok()) << forged;
    }
    EXPECT_FALSE(Refusal(token.substr(0, i)).ok()) << i;
    EXPECT_FALSE(Refusal(token.substr(0, i) + "A" + token.substr(i)).ok()) << i;
  }
  EXPECT_FALSE(Refusal("").ok());
  EXPECT_FALSE(Refusal(std::string(100'000, 'A')).ok());
  EXPECT_FALSE(Refusal("sluice1." + std::string(100'000, 'A')).ok());
  EXPECT_FALSE(Refusal(token + token).ok());
}

// A signature of 64 bytes leaves four bits of its last character to stand for nothing.
TEST_F(SignedTokenTest, ATokenHasOneSpelling) {
  const std::string token = Sign();
  for (char c = '!'; c <= '~'; ++c) {
    if (c == token.back()) continue;
    EXPECT_FALSE(Refusal(token.substr(0, token.size() - 1) + c).ok()) << c;
  }
  for (const char* end : {"=", "==", " ", "\n"}) EXPECT_FALSE(Refusal(token + end).ok()) << end;
}

// Terms that this version does not know may be a limit: signed or not, they are refused.
TEST_F(SignedTokenTest, UnknownTermsAreRefused) {
  BIO* bio = BIO_new_mem_buf(pair_.private_key.data(), static_cast<int>(pair_.private_key.size()));
  EVP_PKEY* key = PEM_read_bio_PrivateKey(bio, nullptr, nullptr, nullptr);
  BIO_free(bio);
  const auto sign = [key](const std::string& terms) {
    const std::string text = absl::StrCat("sluice1.", absl::WebSafeBase64Escape(terms));
    unsigned char signature[64];
    size_t size = sizeof(signature);
    EVP_MD_CTX* context = EVP_MD_CTX_new();
    EXPECT_EQ(EVP_DigestSignInit(context, nullptr, nullptr, nullptr, key), 1);
    EXPECT_EQ(EVP_DigestSign(context, signature, &size,
                             reinterpret_cast<const unsigned char*>(text.data()), text.size()),
              1);
    EVP_MD_CTX_free(context);
    return absl::StrCat(text, ".",
                        absl::WebSafeBase64Escape(
                            absl::string_view(reinterpret_cast<const char*>(signature), size)));
  };
  const std::string good =
      "tenant=lab;share=25;max_sessions=8;memory_bytes=0;expires=1795000060;nonce=0123456789abcdef";
  EXPECT_TRUE(Refusal(sign(good)).ok()) << Refusal(sign(good));
  for (const char* bad :
       {"", ";;;;;", "tenant=lab",
        "tenant=lab;share=25;max_sessions=8;memory_bytes=0;expires=1795000060;"
        "nonce=0123456789abcdef;pool=off",
        "share=25;tenant=lab;max_sessions=8;memory_bytes=0;expires=1795000060;"
        "nonce=0123456789abcdef",
        "tenant=../x;share=25;max_sessions=8;memory_bytes=0;expires=1795000060;"
        "nonce=0123456789abcdef",
        "tenant=lab;share=+25;max_sessions=8;memory_bytes=0;expires=1795000060;"
        "nonce=0123456789abcdef",
        "tenant=lab;share=025;max_sessions=8;memory_bytes=0;expires= 1795000060;"
        "nonce=0123456789abcdef",
        "tenant=lab;share=0;max_sessions=8;memory_bytes=0;expires=1795000060;"
        "nonce=0123456789abcdef",
        "tenant=lab;share=25;max_sessions=-1;memory_bytes=0;expires=1795000060;"
        "nonce=0123456789abcdef",
        "tenant=lab;share=25;max_sessions=8;memory_bytes=0;expires=99999999999999999999;"
        "nonce=0123456789abcdef",
        "tenant=lab;share=25;max_sessions=8;memory_bytes=0;expires=1795000060;nonce=x"}) {
    EXPECT_FALSE(Refusal(sign(bad)).ok()) << bad;
  }
  EVP_PKEY_free(key);
}

// A key file's mistake is named with its line, also behind a good key.
TEST_F(SignedTokenTest, AWrongKeyFileIsNamedByItsLine) {
  const auto said = [](const std::string& pem) {
    return std::string(TokenKeys::Read(pem).status().message());
  };
  const std::string& good = pair_.public_key;  // Three lines.
  EXPECT_TRUE(TokenKeys::Read("Our cluster's:\n" + good + "\r\n" + good).ok());
  EXPECT_NE(said(good + pair_.private_key).find("line 4 is of a private key"), std::string::npos);
  EXPECT_NE(said(good + "# next\n-----BEGIN CERTIFICATE-----\n").find("line 5 is of no public key"),
            std::string::npos);
  EXPECT_NE(said(good + good.substr(0, 40)).find("line 4 begins a key that is damaged"),
            std::string::npos);
  std::string many;
  for (int i = 0; i < 65; ++i) many += good;
  EXPECT_NE(said(many).find("line 193 begins a key beyond the 64"), std::string::npos);
}

TEST_F(SignedTokenTest, OnlyEd25519KeysAreTaken) {
  EXPECT_FALSE(TokenKeys::Read("").ok());
  EXPECT_FALSE(TokenKeys::Read("nothing").ok());
  EXPECT_FALSE(TokenKeys::Read(pair_.private_key).ok());
  EXPECT_FALSE(SignToken(Lab(), pair_.public_key).ok());
  EXPECT_FALSE(SignToken(Lab(), "").ok());
  EVP_PKEY* other = EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256");
  BIO* bio = BIO_new(BIO_s_mem());
  PEM_write_bio_PUBKEY(bio, other);
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio, &text);
  EXPECT_FALSE(TokenKeys::Read({text, static_cast<size_t>(size)}).ok());
  BIO_free(bio);
  EVP_PKEY_free(other);
}

TEST_F(SignedTokenTest, NamesAndSharesAreChecked) {
  for (const char* name : {"", "Lab", "a;share=1", "a_b", "123456789012345678901234567890123"}) {
    TokenTerms terms = Lab();
    terms.tenant = name;
    EXPECT_FALSE(SignToken(terms, pair_.private_key).ok()) << name;
  }
  TokenTerms terms = Lab();
  terms.share = 0;
  EXPECT_FALSE(SignToken(terms, pair_.private_key).ok());
}

}  // namespace
}  // namespace sluice::gateway
