// SPDX-License-Identifier: Apache-2.0
#include "proto/network/signed_token.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "broker/os/random.h"
#include "proto/network/token_text.h"
#include "proto/status_macros.h"

namespace sluice::wire {
namespace {

constexpr char kMark[] = "sluice1.";
constexpr size_t kMarkLength = sizeof(kMark) - 1;
constexpr size_t kMostBytes = 1024;
constexpr size_t kSignatureBytes = 64;
constexpr size_t kMostKeys = 64;
constexpr char kNotWhole[] = "it is not whole, or something is in it that belongs elsewhere";

using TokenKey = std::shared_ptr<EVP_PKEY>;
using TokenBio = std::unique_ptr<BIO, decltype(&BIO_free_all)>;
using DigestContext = std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)>;

TokenKey OwnKey(EVP_PKEY* key) { return TokenKey(key, &EVP_PKEY_free); }

TokenBio ToRead(std::string_view text) {
  return {BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), &BIO_free_all};
}

// OpenSSL's own would ask at the terminal.
int NoPassphrase(char*, int, int, void*) { return 0; }

bool IsEd25519(const TokenKey& key) { return EVP_PKEY_base_id(key.get()) == EVP_PKEY_ED25519; }

absl::Status NotSigned(const std::string& why) {
  return absl::UnauthenticatedError(absl::StrCat("the signed token is refused: ", why));
}

bool IsNonce(std::string_view nonce) {
  return nonce.size() == 16 &&
         nonce.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string WriteTerms(const TokenTerms& terms) {
  return absl::StrCat("tenant=", terms.tenant, ";share=", terms.share,
                      ";max_sessions=", terms.max_sessions, ";memory_bytes=", terms.memory_bytes,
                      ";expires=", terms.expires, ";nonce=", terms.nonce);
}

// Only what Write writes: what somebody has signed and this version does not know may be a limit.
bool ParseTerms(const std::string& text, TokenTerms* terms) {
  const std::vector<std::string> parts = absl::StrSplit(text, ';');
  constexpr std::string_view kNames[] = {
      "tenant=", "share=", "max_sessions=", "memory_bytes=", "expires=", "nonce="};
  if (parts.size() != std::size(kNames)) return false;
  std::string values[std::size(kNames)];
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!parts[i].starts_with(kNames[i])) return false;
    values[i] = parts[i].substr(kNames[i].size());
  }
  terms->tenant = values[0];
  terms->nonce = values[5];
  return absl::SimpleAtoi(values[1], &terms->share) &&
         absl::SimpleAtoi(values[2], &terms->max_sessions) &&
         absl::SimpleAtoi(values[3], &terms->memory_bytes) &&
         absl::SimpleAtoi(values[4], &terms->expires) && IsTenantName(terms->tenant) &&
         IsNonce(terms->nonce) && terms->share >= 1 && terms->share <= 10'000 &&
         WriteTerms(*terms) == text;
}

bool IsSignedBy(const TokenKey& key, std::string_view text, const std::string& signature) {
  const DigestContext context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  const bool good =
      context != nullptr &&
      EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
      EVP_DigestVerify(context.get(), reinterpret_cast<const unsigned char*>(signature.data()),
                       signature.size(), reinterpret_cast<const unsigned char*>(text.data()),
                       text.size()) == 1;
  ERR_clear_error();
  return good;
}

std::string TextOf(BIO* bio) {
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio, &text);
  return size > 0 ? std::string(text, static_cast<size_t>(size)) : std::string();
}

std::string ToBase64(std::string_view bytes) {
  std::string text = absl::WebSafeBase64Escape({bytes.data(), bytes.size()});
  while (!text.empty() && text.back() == '=') text.pop_back();
  return text;
}

// Only what ToBase64 writes, so that a token has one spelling.
std::optional<std::string> FromBase64(std::string_view text) {
  std::string bytes;
  if (!absl::WebSafeBase64Unescape({text.data(), text.size()}, &bytes) || ToBase64(bytes) != text)
    return std::nullopt;
  return bytes;
}

constexpr char kPublicKeyBegin[] = "-----BEGIN PUBLIC KEY-----";

// The key whose first line this is; `rest` begins with that line.
absl::StatusOr<TokenKey> ReadPublicKey(absl::string_view line, std::string_view rest) {
  if (absl::StrContains(line, "PRIVATE KEY")) {
    return absl::InvalidArgumentError(
        "is of a private key, which no daemon should have: name the file of the public one, which "
        "`sluicectl token keygen FILE` has called FILE.pub");
  }
  if (line != kPublicKeyBegin) {
    return absl::InvalidArgumentError(
        "is of no public key in PEM; make a pair with: sluicectl token keygen FILE");
  }
  const TokenBio bio = ToRead(rest);
  TokenKey key = OwnKey(PEM_read_bio_PUBKEY(bio.get(), nullptr, nullptr, nullptr));
  ERR_clear_error();
  if (key == nullptr) {
    return absl::InvalidArgumentError(
        "begins a key that is damaged; copy the public key's file again");
  }
  if (IsEd25519(key)) return key;
  return absl::InvalidArgumentError(
      "begins a key of another kind than Ed25519; make a pair with: sluicectl token keygen FILE");
}

}  // namespace

absl::StatusOr<TokenKeys> TokenKeys::Read(std::string_view pem) {
  TokenKeys keys;
  size_t number = 0;
  for (size_t begin = 0; begin < pem.size();) {
    const size_t end = std::min(pem.find('\n', begin), pem.size());
    ++number;
    const absl::string_view line = absl::StripAsciiWhitespace({pem.data() + begin, end - begin});
    if (absl::StartsWith(line, "-----BEGIN")) {
      absl::StatusOr<TokenKey> key = ReadPublicKey(line, pem.substr(begin));
      if (key.ok() && keys.keys_.size() == kMostKeys) {
        key = absl::InvalidArgumentError(
            absl::StrCat("begins a key beyond the ", kMostKeys, " that are taken; remove some"));
      }
      if (!key.ok()) {
        return absl::InvalidArgumentError(
            absl::StrCat("line ", number, " ", key.status().message()));
      }
      keys.keys_.push_back(*std::move(key));
    }
    begin = end + 1;
  }
  if (!keys.empty()) return keys;
  return absl::InvalidArgumentError(
      "it holds no public key in PEM; make a pair with: sluicectl token keygen FILE");
}

absl::StatusOr<TokenTerms> TokenKeys::Check(std::string_view token, int64_t now) const {
  if (!IsSignedToken(token)) return NotSigned("it is none");
  const size_t dot = token.find('.', kMarkLength);
  if (token.size() > kMostBytes || dot == std::string_view::npos) return NotSigned(kNotWhole);
  const std::string_view body = token.substr(kMarkLength, dot - kMarkLength);
  const std::string_view end = token.substr(dot + 1);
  const std::optional<std::string> text = FromBase64(body);
  const std::optional<std::string> signature = FromBase64(end);
  if (!text.has_value() || !signature.has_value() || signature->size() != kSignatureBytes)
    return NotSigned(kNotWhole);
  const std::string_view signed_text = token.substr(0, dot);
  const bool known = std::any_of(keys_.begin(), keys_.end(), [&](const TokenKey& key) {
    return IsSignedBy(key, signed_text, *signature);
  });
  if (!known) return NotSigned("none of this daemon's keys (token_key) has signed it");
  TokenTerms terms;
  if (!ParseTerms(*text, &terms)) return NotSigned("its terms are none that this version knows");
  if (terms.expires <= now) {
    return NotSigned(absl::StrCat("it expired ", now - terms.expires, " s ago; get a new one"));
  }
  return terms;
}

bool IsSignedToken(std::string_view token) { return token.substr(0, kMarkLength) == kMark; }

absl::StatusOr<std::string> SignToken(TokenTerms terms, std::string_view key_text) {
  uint64_t number = 0;
  RETURN_IF_ERROR(os::FillRandom(&number, sizeof(number)));
  terms.nonce = absl::StrCat(absl::Hex(number, absl::kZeroPad16));
  TokenTerms same;
  if (!ParseTerms(WriteTerms(terms), &same)) {
    return absl::InvalidArgumentError(
        "a token needs a tenant's name of 1 to 32 of a to z, 0 to 9 and \"-\", and a share from 1 "
        "to 10000");
  }
  const TokenBio bio = ToRead(key_text);
  const TokenKey key = OwnKey(PEM_read_bio_PrivateKey(bio.get(), nullptr, &NoPassphrase, nullptr));
  ERR_clear_error();
  if (key == nullptr || !IsEd25519(key)) {
    return absl::InvalidArgumentError(
        "the key is no Ed25519 private key in PEM without a passphrase; make one with: sluicectl "
        "token keygen FILE");
  }
  const std::string text = absl::StrCat(kMark, ToBase64(WriteTerms(terms)));
  unsigned char signature[kSignatureBytes];
  size_t size = sizeof(signature);
  const DigestContext context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  if (context == nullptr ||
      EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key.get()) != 1 ||
      EVP_DigestSign(context.get(), signature, &size,
                     reinterpret_cast<const unsigned char*>(text.data()), text.size()) != 1)
    return absl::InternalError("OpenSSL cannot sign with the key");
  return absl::StrCat(text, ".", ToBase64({reinterpret_cast<const char*>(signature), size}));
}

absl::StatusOr<TokenKeyPair> MakeTokenKeys() {
  EVP_PKEY* made = nullptr;
  const std::unique_ptr<EVP_PKEY_CTX, decltype(&EVP_PKEY_CTX_free)> context(
      EVP_PKEY_CTX_new_id(EVP_PKEY_ED25519, nullptr), &EVP_PKEY_CTX_free);
  if (context == nullptr || EVP_PKEY_keygen_init(context.get()) != 1 ||
      EVP_PKEY_keygen(context.get(), &made) != 1)
    return absl::InternalError("OpenSSL makes no Ed25519 key");
  const TokenKey key = OwnKey(made);
  const TokenBio secret(BIO_new(BIO_s_mem()), &BIO_free_all);
  const TokenBio open(BIO_new(BIO_s_mem()), &BIO_free_all);
  if (PEM_write_bio_PrivateKey(secret.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) !=
          1 ||
      PEM_write_bio_PUBKEY(open.get(), key.get()) != 1)
    return absl::InternalError("OpenSSL cannot write the key");
  return TokenKeyPair{TextOf(secret.get()), TextOf(open.get())};
}

}  // namespace sluice::wire
