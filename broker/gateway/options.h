// SPDX-License-Identifier: Apache-2.0
//
// What the broker tells the gateway at its start, by arguments and inherited descriptors
// (broker/gateway_link.cc). The broker has checked all of it; that plaintext stays on this machine
// is checked here again, where it would do harm.
//
// Plain data; parsed once, by main.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "broker/base/log.h"

namespace sluice {

struct GatewayOptions {
  std::vector<std::string> listen;  // HOST:PORT or [V6]:PORT
  bool allow_plaintext = false;
  // The files' contents; empty: none.
  std::string certificate;
  std::string key;
  std::string client_ca;
  std::string tokens;
  LogLevel log_level = LogLevel::kInfo;
  bool check = false;  // Say what is wrong with the rest, and end.

  bool plaintext() const { return certificate.empty(); }
};

// Reads and closes the descriptors that the arguments name.
absl::StatusOr<GatewayOptions> ParseGatewayOptions(int argc, const char* const* argv);
absl::Status CheckGatewayOptions(const GatewayOptions& options);

}  // namespace sluice
