// SPDX-License-Identifier: Apache-2.0
// The probe: a short-lived worker that asks every driver for everything that can be asked before
// there is a context, so that the broker can answer without ever loading one.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/snapshot.pb.h"

namespace sluice::worker {

// The loaded driver's answers about those devices that the list allows. A session may have
// `memory_limit` bytes; 0: no limit.
absl::StatusOr<v1::PlatformSnapshot> TakeSnapshot(const std::string& device_allow_list,
                                                  uint64_t memory_limit);

// Loads the driver and writes its PlatformSnapshot to the descriptor; nothing if no device is
// allowed.
absl::Status Probe(int snapshot_fd, const std::string& device_allow_list, uint64_t memory_limit);

}  // namespace sluice::worker
