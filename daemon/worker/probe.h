// SPDX-License-Identifier: Apache-2.0
// The probe: a short-lived worker that asks every driver for everything that can be asked before
// there is a context, so that the broker can answer without ever loading one.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace sluice::worker {

// Writes a PlatformSnapshot to the descriptor. A session may have `memory_limit` bytes; 0: no
// limit.
absl::Status Probe(int snapshot_fd, const std::string& device_allow_list, uint64_t memory_limit);

}  // namespace sluice::worker
