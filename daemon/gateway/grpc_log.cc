// SPDX-License-Identifier: Apache-2.0
#include "daemon/gateway/grpc_log.h"

#include <grpc/support/log.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "broker/base/log.h"

namespace sluice::gateway {
namespace {

constexpr uint32_t kLinesPerSecond = 5;

// Second in the upper half, lines of that second in the lower.
std::atomic<uint64_t> recent{0};
std::atomic<uint64_t> suppressed{0};

bool Allowed() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now).count();
  const uint64_t second = static_cast<uint64_t>(seconds) << 32;
  uint64_t seen = recent.load(std::memory_order_relaxed);
  while (true) {
    const bool same = (seen >> 32 << 32) == second;
    if (same && static_cast<uint32_t>(seen) >= kLinesPerSecond) {
      suppressed.fetch_add(1, std::memory_order_relaxed);
      return false;
    }
    if (recent.compare_exchange_weak(seen, same ? seen + 1 : second + 1, std::memory_order_relaxed))
      return true;
  }
}

void Write(gpr_log_func_args* line) {
  const bool error = line->severity == GPR_LOG_SEVERITY_ERROR;
  if (!Allowed()) return;
  // Faults of the network's are warnings at most.
  Log(error ? LogLevel::kWarning : LogLevel::kDebug, "gateway",
      absl::StrCat("gRPC: ", line->message),
      {{"suppressed", suppressed.exchange(0, std::memory_order_relaxed)}});
}

}  // namespace

void TakeOverGrpcLog() {
  if (std::getenv("GRPC_VERBOSITY") == nullptr) gpr_set_log_verbosity(GPR_LOG_SEVERITY_ERROR);
  gpr_set_log_function(Write);
}

}  // namespace sluice::gateway
