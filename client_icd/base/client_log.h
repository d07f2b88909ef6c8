// SPDX-License-Identifier: Apache-2.0
// The driver's messages for a person. Silent unless SLUICE_LOG is set (debug, info, warning or
// error): the process belongs to a stranger. One line each on stderr. Thread-safe.
#pragma once

#include <string_view>

namespace sluice::client {

enum class ClientLogLevel { kDebug, kInfo, kWarning, kError };

bool ClientLogs(ClientLogLevel level);
void ClientLog(ClientLogLevel level, std::string_view text);

}  // namespace sluice::client
