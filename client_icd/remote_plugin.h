// SPDX-License-Identifier: Apache-2.0
// Loads libsluice_remote.so, the transport over the network, the first time a remote endpoint is
// used: it brings gRPC and TLS, which an application with a local daemon need not carry. Looked for
// beside this library, then in ../lib/sluice and sluice/ below it. Thread-safe.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client_icd/transport.h"

namespace sluice {

// The daemon's serialised PlatformSnapshot. Bounded by SLUICE_CONNECT_TIMEOUT_MS, by default 2000.
absl::StatusOr<std::string> DescribeRemote(const std::string& target);
// A new session.
absl::StatusOr<std::unique_ptr<Transport>> ConnectRemote(const std::string& target);

}  // namespace sluice
