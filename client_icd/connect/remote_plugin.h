// SPDX-License-Identifier: Apache-2.0
// A daemon on the network, through the transport that remote_library.h finds. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client_icd/session/transport.h"

namespace sluice::client {

// How long an endpoint that has taken the connection may take to answer, unless ConnectLimitMs says
// how long it may take with the connection.
inline constexpr uint32_t kRemoteAnswerTimeoutMs = 10'000;

// The daemon's serialised PlatformSnapshot, in that time, and its version, if it tells one.
absl::StatusOr<std::string> DescribeRemote(const std::string& target, std::string* version);
// A new session.
absl::StatusOr<std::unique_ptr<Transport>> ConnectRemote(const std::string& target);

}  // namespace sluice::client
