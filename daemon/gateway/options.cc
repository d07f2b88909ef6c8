// SPDX-License-Identifier: Apache-2.0
#include "daemon/gateway/options.h"

#include <optional>
#include <string_view>
#include <tuple>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "broker/os/file.h"
#include "broker/os/scoped_handle.h"
#include "proto/gateway_messages.h"
#include "proto/network/loopback.h"
#include "proto/status_macros.h"

namespace sluice::gateway {
namespace {

constexpr size_t kMaxFileBytes = 1 << 20;

// `name` is the key of [[network]] whose file this is.
absl::StatusOr<std::string> ReadFile(const char* name, const os::UniqueFd& fd) {
  absl::StatusOr<std::string> content = os::ReadToEnd(fd.get(), kMaxFileBytes);
  if (!content.ok()) {
    return absl::Status(content.status().code(),
                        absl::StrCat(name, ": ", content.status().message()));
  }
  if (content->empty()) return absl::InvalidArgumentError(absl::StrCat(name, ": it is empty"));
  return content;
}

absl::StatusOr<std::string> ReadInherited(const char* name, const std::string& value) {
  int number = -1;
  if (!absl::SimpleAtoi(value, &number) || number < 3) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": ", value, " is no descriptor's number"));
  }
  return ReadFile(name, os::UniqueFd(number));
}

int* LimitOf(const std::string& argument, ConnectionLimits* limits) {
  if (argument == "--max-connections") return &limits->most;
  if (argument == "--max-connections-per-address") return &limits->most_of_address;
  if (argument == "--max-newcomers") return &limits->most_newcomers;
  return nullptr;
}

}  // namespace

absl::StatusOr<GatewayOptions> ParseGatewayOptions(int argc, const char* const* argv) {
  GatewayOptions options;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : argument.substr(equals + 1);
    if (name == "--listen" && !value.empty()) {
      options.listen.push_back(value);
    } else if (name == "--via") {
      options.via = value;
    } else if (argument == "--namespaces=1") {  // main's.
    } else if (argument == "--private-root=1") {
      options.private_root = true;
    } else if (argument == "--allow-plaintext") {
      options.allow_plaintext = true;
    } else if (name == "--check") {
      options.check = true;
      if (value == "addresses") options.check_listening = wire::ListenCheck::kAddresses;
      if (value == "ports") options.check_listening = wire::ListenCheck::kPorts;
    } else if (name == "--cert-fd") {
      ASSIGN_OR_RETURN(options.tls.certificate, ReadInherited("certificate", value));
    } else if (name == "--key-fd") {
      ASSIGN_OR_RETURN(options.tls.key, ReadInherited("key", value));
    } else if (name == "--client-ca-fd") {
      ASSIGN_OR_RETURN(options.tls.client_ca, ReadInherited("client_ca", value));
    } else if (name == "--client-crl-fd") {
      ASSIGN_OR_RETURN(options.tls.client_crl, ReadInherited("client_crl", value));
    } else if (int* const limit = LimitOf(name, &options.limits); limit != nullptr) {
      if (!absl::SimpleAtoi(value, limit) || *limit < 1)
        return absl::InvalidArgumentError(absl::StrCat(argument, ": no number of connections"));
    } else if (name == "--token-fd") {
      ASSIGN_OR_RETURN(options.tokens, ReadInherited("token_file", value));
    } else if (name == "--token-key-fd") {
      ASSIGN_OR_RETURN(options.token_keys, ReadInherited("token_key", value));
    } else if (name == "--log-level") {
      const std::optional<LogLevel> level = ParseLogLevel(value);
      if (!level.has_value())
        return absl::InvalidArgumentError(absl::StrCat("no log level: ", value));
      options.log_level = *level;
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("sluice-gateway: bad argument ", argument,
                       " (it is started by sluiced; see [[network]] in its configuration)"));
    }
  }
  RETURN_IF_ERROR(CheckGatewayOptions(options));
  return options;
}

absl::StatusOr<GatewayOptions> WithFiles(GatewayOptions options, uint32_t files,
                                         const std::vector<os::UniqueFd>& descriptors) {
  const std::tuple<uint32_t, const char*, std::string*> places[] = {
      {wire::kFileCertificate, "certificate", &options.tls.certificate},
      {wire::kFileKey, "key", &options.tls.key},
      {wire::kFileClientCa, "client_ca", &options.tls.client_ca},
      {wire::kFileClientCrl, "client_crl", &options.tls.client_crl},
      {wire::kFileTokens, "token_file", &options.tokens},
      {wire::kFileTokenKeys, "token_key", &options.token_keys}};
  size_t next = 0;
  for (const auto& [bit, name, out] : places) {
    if ((files & bit) == 0) continue;
    if (next == descriptors.size()) return absl::InternalError("a file without its descriptor");
    ASSIGN_OR_RETURN(*out, ReadFile(name, descriptors[next++]));
  }
  RETURN_IF_ERROR(CheckGatewayOptions(options));
  return options;
}

absl::Status CheckGatewayOptions(const GatewayOptions& options) {
  if (options.listen.empty()) return absl::InvalidArgumentError("no address to listen on");
  if (options.tls.certificate.empty() != options.tls.key.empty()) {
    return absl::InvalidArgumentError("TLS needs both a certificate and its key");
  }
  if (!options.plaintext()) return absl::OkStatus();
  if (!options.tls.client_ca.empty()) {
    return absl::InvalidArgumentError(
        "client certificates can only be checked with TLS: give a certificate and a key");
  }
  for (const std::string& address : options.listen) {
    if (options.allow_plaintext || wire::IsLoopbackTarget(address)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("listening on ", address,
                     " without TLS is refused: give \"certificate\" and \"key\", or listen "
                     "on 127.0.0.1 or [::1], or write allow_plaintext = true"));
  }
  return absl::OkStatus();
}

}  // namespace sluice::gateway
