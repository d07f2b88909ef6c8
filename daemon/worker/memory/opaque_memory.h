// SPDX-License-Identifier: Apache-2.0
// Buffers of the driver's in memory of its device that an opaque descriptor stands for
// (cl_khr_external_memory_opaque_fd): shadows of the worker's making, and what the client
// hands over. UUIDs name its owner; nothing else about it can be seen from outside of the
// driver.
//
// Session thread only.
#pragma once

#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/os/scoped_handle.h"
#include "daemon/helpers/external_memory.h"
#include "daemon/worker/memory/change_of_hands.h"
#include "daemon/worker/objects.h"

namespace sluice::worker {

// The driver of a device that imports such memory.
struct OpaqueImporter {
  cl_device_id device = nullptr;
  os::DeviceUuid device_uuid = {};
  std::optional<os::DeviceUuid> driver_uuid;  // None: the driver's does not tell.
  std::shared_ptr<ChangeOfHands> hands;
};

// The importer of the context's one device; the error says what is missing, for a log.
absl::StatusOr<OpaqueImporter> FindOpaqueImporter(const ContextObject& context);

// Makes `memory`, whose context and size are set, a buffer in that memory: sets its handle and
// hands. The descriptor is the driver's then.
absl::Status ImportOpaque(const OpaqueImporter& importer, os::UniqueFd fd, cl_mem_flags flags,
                          MemoryObject* memory);

}  // namespace sluice::worker
