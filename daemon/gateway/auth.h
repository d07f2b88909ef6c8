// SPDX-License-Identifier: Apache-2.0
//
// The identity of a network client. TLS with client certificates is judged by gRPC during the
// handshake; bearer tokens are judged here, for every call: those of a file, and those that a
// cluster has signed (proto/network/signed_token.h). The name that comes out is the client's for
// the broker, which counts sessions by it.
//
// Owner: GatewayServer. Thread-safe: its constants are set by the constructor.
#pragma once

#include <grpcpp/server_context.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/gateway/front/admitted_peer.h"
#include "proto/network/signed_token.h"

namespace sluice::gateway {

// True if they are equal. Takes as long for every `offered` of the same length, wherever it
// differs.
bool ConstantTimeEqual(std::string_view secret, std::string_view offered);

// The owners of the tokens that are accepted.
struct TokenOwners {
  std::vector<std::string> tenants;  // Of each token; "", or no such entry: nobody's by name.
  wire::TokenKeys keys;              // That sign others.
};

class Authenticator {
 public:
  // Without tokens and keys, every client that the handshake let in is accepted. `via`: said behind
  // names, where another gateway of the daemon asks for other certificates or tokens; else empty.
  explicit Authenticator(std::vector<std::string> tokens, std::string via = "",
                         TokenOwners owners = {});

  // The number (from 1) of the token that "authorization: Bearer TOKEN" carries; nothing if it is
  // none of ours.
  std::optional<size_t> FindToken(std::string_view authorization) const;

  // The client's name: its certificate's subject, or its token's name, or its address. `context`:
  // of a call of this peer's, which carries the token. kUnauthenticated: no valid token. `terms` (may
  // be null): those of a signed token, whose tenant is the name then, whatever the certificate.
  absl::StatusOr<std::string> Authenticate(const AdmittedPeer& peer,
                                           const grpc::ServerContext& context,
                                           std::optional<wire::TokenTerms>* terms = nullptr) const;

 private:
  // Of the client; `name` is what is known of it before.
  absl::StatusOr<std::string> NameByToken(const grpc::ServerContext& context, std::string name,
                                          std::optional<wire::TokenTerms>* terms) const;

  std::vector<std::string> tokens_;
  std::vector<std::string> names_;  // Of tokens_.
  wire::TokenKeys keys_;
  std::string via_;
};

// "token " and the first 12 digits of the token's SHA-256: a name that does not give the token
// away, and stays with it whatever becomes of the file's other lines.
std::string TokenName(std::string_view token);

// The peer of a call whose connection gRPC has accepted, and ended TLS of, as it does on Windows.
AdmittedPeer PeerOfGrpc(const grpc::ServerContext& context);

// One line for the log: whom Authenticate has refused, and why.
void LogRefused(const AdmittedPeer& peer, const absl::Status& why);

// A client's name as the broker and its file names can carry it: what is too long is cut, and told
// apart by its SHA-256.
inline constexpr size_t kMaxPeerName = 80;
std::string FittingName(const std::string& name);

// "ipv4:127.0.0.1:1234" -> "127.0.0.1": a port would make every connection another client.
std::string PeerHost(std::string_view grpc_peer);

}  // namespace sluice::gateway
