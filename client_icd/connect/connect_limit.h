// SPDX-License-Identifier: Apache-2.0
// How long one endpoint may hold a program's start: SLUICE_CONNECT_TIMEOUT_MS, from connecting to
// what the daemon says of its platforms. Thread-safe.
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "broker/os/this_process.h"

namespace sluice::client {

// None if the variable is no number above 0: each kind of endpoint has limits of its own then.
inline std::optional<int> ConnectLimitMs() {
  constexpr uint32_t kMost = 24 * 3600 * 1000;
  const std::string text = os::EnvironmentVariable("SLUICE_CONNECT_TIMEOUT_MS").value_or("");
  uint32_t value = 0;
  if (!absl::SimpleAtoi(text, &value) || value == 0) return std::nullopt;
  return static_cast<int>(std::min(value, kMost));
}

// The log's line for a peer that has taken the connection and then nothing.
inline std::string NoAnswerWithin(int64_t limit_ms) {
  return absl::StrCat("who serves it has not answered within ", limit_ms,
                      " ms; is that a daemon? (SLUICE_CONNECT_TIMEOUT_MS)");
}

}  // namespace sluice::client
