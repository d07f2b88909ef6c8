// SPDX-License-Identifier: Apache-2.0
//
// Bearer tokens that a cluster signs for one tenant: whoever holds one gets sessions on that
// tenant's account, with the terms that stand in it, until it expires. A daemon knows only the
// public key, so a cluster's controller hands out tokens for many daemons and administers none.
// A token names no daemon: it is good, as often as its terms allow, wherever its key is known.
//
//   sluice1.TERMS.SIGNATURE    both in base64url (RFC 4648), without padding
//   TERMS      tenant=lab;share=25;max_sessions=8;memory_bytes=4294967296;expires=1795000000;
//              nonce=0123456789abcdef  (one line, in this order, all of them)
//   SIGNATURE  Ed25519 (RFC 8032) of "sluice1." and TERMS as they stand in the token
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

struct evp_pkey_st;

namespace sluice::wire {

struct TokenTerms {
  std::string tenant;         // 1 to 32 of a to z, 0 to 9 and "-".
  uint32_t share = 100;       // 1 to 10000.
  uint64_t max_sessions = 0;  // 0: as everybody has, here and below.
  uint64_t memory_bytes = 0;  // Of each session.
  int64_t expires = 0;        // Seconds since 1970.
  // 16 hexadecimal digits, by which one token is told from another in the log.
  std::string nonce;
};

// Public keys, of which any may have signed.
class TokenKeys {
 public:
  // PEM, one key or several. An error, which names the line, if something else is among them or
  // there is none.
  static absl::StatusOr<TokenKeys> Read(std::string_view pem);

  bool empty() const { return keys_.empty(); }

  // The terms that it grants. kUnauthenticated: none of these keys has signed it, it has expired,
  // or its terms are none that this version knows.
  absl::StatusOr<TokenTerms> Check(std::string_view token, int64_t now) const;

 private:
  std::vector<std::shared_ptr<evp_pkey_st>> keys_;
};

// True if it says of itself that it is one.
bool IsSignedToken(std::string_view token);

// `key`: a private key, PEM. Fills the nonce in.
absl::StatusOr<std::string> SignToken(TokenTerms terms, std::string_view key);

// A new pair, in PEM.
struct TokenKeyPair {
  std::string private_key;
  std::string public_key;
};
absl::StatusOr<TokenKeyPair> MakeTokenKeys();

}  // namespace sluice::wire
