// SPDX-License-Identifier: Apache-2.0
#include "daemon/gateway/auth.h"

#include <grpc/grpc_security_constants.h>
#include <openssl/sha.h>

#include <ctime>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "broker/base/log.h"

namespace sluice::gateway {
namespace {

constexpr std::string_view kBearer = "Bearer ";

// The subject ("CN=alice,O=Example"), else the first other name that the certificate carries
// ("SAN=alice.example"), which no subject looks like.
std::string CertificateName(const AdmittedPeer& peer) {
  if (!peer.subject.empty()) return peer.subject;
  if (!peer.common_name.empty()) return absl::StrCat("CN=", peer.common_name);
  if (!peer.alternative_names.empty() && !peer.alternative_names[0].empty())
    return absl::StrCat("SAN=", peer.alternative_names[0]);
  return "";
}

// No subject, other name, token or address looks like this.
std::string TenantName(std::string_view tenant) {
  return absl::StrCat("tenant=", absl::string_view(tenant.data(), tenant.size()));
}

std::string Sha256Hex(std::string_view text, size_t bytes_shown) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest);
  return absl::BytesToHexString({reinterpret_cast<const char*>(digest), bytes_shown});
}

}  // namespace

bool ConstantTimeEqual(std::string_view secret, std::string_view offered) {
  // The loop's length is the offered one's, which whoever offers it knows.
  unsigned difference = secret.size() == offered.size() ? 0 : 1;
  for (size_t i = 0; i < offered.size(); ++i) {
    const char c = secret.empty() ? '\0' : secret[i % secret.size()];
    difference |= static_cast<unsigned char>(c) ^ static_cast<unsigned char>(offered[i]);
  }
  // The compiler must not turn this into an early way out.
  volatile unsigned result = difference;
  return result == 0;
}

Authenticator::Authenticator(std::vector<std::string> tokens, std::string via, TokenOwners owners)
    : tokens_(std::move(tokens)), keys_(std::move(owners.keys)), via_(std::move(via)) {
  owners.tenants.resize(tokens_.size());
  for (size_t i = 0; i < tokens_.size(); ++i) {
    names_.push_back(owners.tenants[i].empty() ? TokenName(tokens_[i])
                                               : TenantName(owners.tenants[i]));
  }
}

std::optional<size_t> Authenticator::FindToken(std::string_view authorization) const {
  if (authorization.substr(0, kBearer.size()) != kBearer) return std::nullopt;
  authorization.remove_prefix(kBearer.size());
  std::optional<size_t> found;
  for (size_t i = 0; i < tokens_.size();
       ++i) {  // All of them: which one it was must not show in the time.
    if (ConstantTimeEqual(tokens_[i], authorization)) found = i + 1;
  }
  return found;
}

absl::StatusOr<std::string> Authenticator::NameByToken(
    const grpc::ServerContext& context, std::string name,
    std::optional<wire::TokenTerms>* terms) const {
  const auto& metadata = context.client_metadata();
  const auto header = metadata.find("authorization");
  if (header == metadata.end()) {
    return absl::UnauthenticatedError(
        "this daemon asks for a bearer token: set SLUICE_TOKEN_FILE to a file that holds one of "
        "its tokens");
  }
  const std::string_view authorization(header->second.data(), header->second.size());
  const bool has_bearer = authorization.starts_with(kBearer);
  if (!keys_.empty() && has_bearer && wire::IsSignedToken(authorization.substr(kBearer.size()))) {
    absl::StatusOr<wire::TokenTerms> granted =
        keys_.Check(authorization.substr(kBearer.size()), std::time(nullptr));
    if (!granted.ok()) return granted.status();
    name = TenantName(granted->tenant);
    if (terms != nullptr) *terms = *std::move(granted);
    return name;
  }
  const std::optional<size_t> token = FindToken(authorization);
  if (token.has_value()) return name.empty() ? names_[*token - 1] : name;
  return absl::UnauthenticatedError(
      "this daemon does not know the token in the file that SLUICE_TOKEN_FILE names");
}

absl::StatusOr<std::string> Authenticator::Authenticate(
    const AdmittedPeer& peer, const grpc::ServerContext& context,
    std::optional<wire::TokenTerms>* terms) const {
  std::string name;
  if (peer.verified) name = CertificateName(peer);
  if (!tokens_.empty() || !keys_.empty()) {
    absl::StatusOr<std::string> by_token = NameByToken(context, std::move(name), terms);
    if (!by_token.ok()) return by_token.status();
    name = *std::move(by_token);
  }
  if (name.empty()) return peer.address;
  return FittingName(via_.empty() ? name : absl::StrCat(name, " via ", via_));
}

AdmittedPeer PeerOfGrpc(const grpc::ServerContext& context) {
  AdmittedPeer peer;
  peer.address = PeerHost(context.peer());
  const auto auth = context.auth_context();
  if (auth == nullptr || !auth->IsPeerAuthenticated()) return peer;
  peer.verified = true;
  const auto values = [&auth](const char* property) {
    std::vector<std::string> texts;
    for (const grpc::string_ref& value : auth->FindPropertyValues(property))
      texts.emplace_back(value.data(), value.size());
    return texts;
  };
  const auto first = [&values](const char* property) {
    const std::vector<std::string> texts = values(property);
    return texts.empty() ? std::string() : texts[0];
  };
  peer.subject = first(GRPC_X509_SUBJECT_PROPERTY_NAME);
  peer.common_name = first(GRPC_X509_CN_PROPERTY_NAME);
  peer.alternative_names = values(GRPC_X509_SAN_PROPERTY_NAME);
  return peer;
}

void LogRefused(const AdmittedPeer& peer, const absl::Status& why) {
  Log(LogLevel::kWarning, "gateway", "client refused",
      {{"peer", peer.address}, {"reason", std::string(why.message())}});
}

std::string TokenName(std::string_view token) {
  constexpr size_t kDigestShown = 6;  // Bytes: to tell an operator's own tokens apart.
  return absl::StrCat("token ", Sha256Hex(token, kDigestShown));
}

std::string FittingName(const std::string& name) {
  constexpr size_t kDigestShown = 16;  // Bytes: nobody finds a second name for so many.
  constexpr std::string_view kMark = " sha256:";
  constexpr size_t kLeft = kMaxPeerName - kMark.size() - 2 * kDigestShown;
  // One that looks as if it had been cut is cut, so that it is not taken for the one it looks like.
  const bool looks_cut =
      name.size() == kMaxPeerName && name.compare(kLeft, kMark.size(), kMark) == 0;
  if (name.size() <= kMaxPeerName && !looks_cut) return name;
  return absl::StrCat(name.substr(0, kLeft), std::string(kMark), Sha256Hex(name, kDigestShown));
}

std::string PeerHost(std::string_view grpc_peer) {
  std::string host(grpc_peer);
  // gRPC writes IPv6 addresses' brackets as %5B and %5D.
  for (const auto& [code, bracket] :
       {std::pair<std::string_view, char>{"%5B", '['}, {"%5D", ']'}}) {
    for (size_t at; (at = host.find(code)) != std::string::npos;)
      host.replace(at, code.size(), 1, bracket);
  }
  const size_t scheme = host.find(':');
  if (scheme != std::string::npos) host.erase(0, scheme + 1);
  const size_t port = host.rfind(':');
  if (port != std::string::npos && host.find(']', port) == std::string::npos) host.resize(port);
  return host;
}

}  // namespace sluice::gateway
