// SPDX-License-Identifier: Apache-2.0
#include "client_icd/base/client_log.h"

#include <cstdio>
#include <optional>
#include <string>

#include "broker/base/shown_text.h"
#include "broker/os/this_process.h"
#include "broker/os/threads.h"

namespace sluice::client {
namespace {

constexpr const char* kNames[] = {"debug", "info", "warning", "error"};

void Write(ClientLogLevel level, std::string_view text) {
  const os::ScopedNoCancellation put_off;
  std::fprintf(stderr, "sluice-icd[%d] %s: %s\n", os::ProcessId(), kNames[static_cast<int>(level)],
               ShownText(text).c_str());
}

// The lowest level that is written; beyond the last: none is.
int Threshold() {
  static const int threshold = [] {
    const std::optional<std::string> wanted = os::EnvironmentVariable("SLUICE_LOG");
    if (!wanted.has_value()) return 4;
    for (int i = 0; i < 4; ++i) {
      if (*wanted == kNames[i]) return i;
    }
    Write(ClientLogLevel::kWarning,
          "SLUICE_LOG=" + *wanted + " is none of debug, info, warning, error; warning is taken");
    return 2;
  }();
  return threshold;
}

}  // namespace

bool ClientLogs(ClientLogLevel level) { return static_cast<int>(level) >= Threshold(); }

void ClientLog(ClientLogLevel level, std::string_view text) {
  if (ClientLogs(level)) Write(level, text);
}

}  // namespace sluice::client
