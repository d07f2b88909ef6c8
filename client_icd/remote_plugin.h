// SPDX-License-Identifier: Apache-2.0
// A daemon on the network, through the transport that remote_library.h finds. Thread-safe.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client_icd/transport.h"

namespace sluice {

// The daemon's serialised PlatformSnapshot. Bounded by SLUICE_CONNECT_TIMEOUT_MS, by default
// 2000, and if it has taken the connection, by ten seconds.
absl::StatusOr<std::string> DescribeRemote(const std::string& target);
// A new session.
absl::StatusOr<std::unique_ptr<Transport>> ConnectRemote(const std::string& target);

}  // namespace sluice
