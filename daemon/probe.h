// SPDX-License-Identifier: Apache-2.0
// The probe: a short-lived worker that asks every driver for everything that can be asked before
// there is a context, so that the broker can answer without ever loading one.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace sluice {

// Writes a PlatformSnapshot to the descriptor.
absl::Status Probe(int snapshot_fd, const std::string& device_allow_list);

}  // namespace sluice
