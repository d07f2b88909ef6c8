// SPDX-License-Identifier: Apache-2.0
//
// The options that the broker gives the gateway at its start, by arguments and inherited
// descriptors (broker/children/gateway_link.cc). The broker has checked all of it. That plaintext
// stays on this machine is checked here again, since a mistake would do harm here.
//
// Plain data; parsed once, by main.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "broker/base/log.h"
#include "broker/os/scoped_handle.h"
#include "daemon/gateway/front/front.h"
#include "proto/network/listen_check.h"

namespace sluice::gateway {

struct GatewayOptions {
  std::vector<std::string> listen;  // HOST:PORT or [V6]:PORT
  bool allow_plaintext = false;
  bool private_root = false;  // Of its own, with the files that it reads alone.
  std::string via;  // Part of the names of clients with a certificate or a token; empty: none.
  // The files' contents; empty: none.
  TlsFiles tls;
  std::string tokens;
  std::string token_keys;
  ConnectionLimits limits;
  LogLevel log_level = LogLevel::kInfo;
  // Say what is wrong with the rest, and with the addresses if asked for, and end.
  bool check = false;
  std::optional<wire::ListenCheck> check_listening;

  bool plaintext() const { return tls.certificate.empty(); }
};

// Reads and closes the descriptors that the arguments name. An error begins with the key of
// [[network]] that it is about, if it is about one: "token_file: ...".
absl::StatusOr<GatewayOptions> ParseGatewayOptions(int argc, const char* const* argv);
// The same with other files, as GatewayFiles brings them (proto/broker_messages.h).
absl::StatusOr<GatewayOptions> WithFiles(GatewayOptions options, uint32_t files,
                                         const std::vector<os::UniqueFd>& descriptors);
absl::Status CheckGatewayOptions(const GatewayOptions& options);

}  // namespace sluice::gateway
