// SPDX-License-Identifier: Apache-2.0
// How long one endpoint may hold a program's start: SLUICE_CONNECT_TIMEOUT_MS, from connecting to
// what the daemon says of its platforms. Thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "broker/os/this_process.h"

namespace sluice::client {

inline constexpr int kMostConnectMs = 24 * 3600 * 1000;
inline constexpr char kConnectLimitVariable[] = "SLUICE_CONNECT_TIMEOUT_MS";

// None if the variable is no number from 1 to a day of milliseconds: each kind of endpoint has
// limits of its own then.
inline std::optional<int> ConnectLimitMs() {
  const std::string text = os::EnvironmentVariable(kConnectLimitVariable).value_or("");
  int value = 0;
  if (absl::SimpleAtoi(text, &value) && value > 0 && value <= kMostConnectMs) return value;
  return std::nullopt;
}

// The log's line if the variable is set to what it cannot be; "" if it is not. `otherwise`: how
// long an answer may take then.
inline std::string ConnectLimitProblem(int otherwise) {
  const std::string text = os::EnvironmentVariable(kConnectLimitVariable).value_or("");
  if (text.empty() || ConnectLimitMs().has_value()) return "";
  return absl::StrCat(kConnectLimitVariable, "=", text, " is no number from 1 to ", kMostConnectMs,
                      "; the default, ", otherwise, ", is taken");
}

// The log's line for a peer that has taken the connection and then nothing.
inline std::string NoAnswerWithin(int64_t limit_ms) {
  return absl::StrCat("who serves it has not answered within ", limit_ms,
                      " ms; is that a daemon? (SLUICE_CONNECT_TIMEOUT_MS)");
}

}  // namespace sluice::client
