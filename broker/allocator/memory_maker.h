// SPDX-License-Identifier: Apache-2.0
//
// Makes the memory behind daemon-owned resources, of whatever kinds this host has: memfds, dma-heap
// or udmabuf, Vulkan's exportable memory; on Windows sections. All of it is zero when it leaves
// here, so that no user sees another's bytes. Implemented in platform_*/allocator.
//
// Owner: the allocator's main. Single thread. Sizes come from the broker, which has held them
// against quotas; drivers may still refuse them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "broker/os/external_memory.h"
#include "broker/os/scoped_handle.h"
#include "broker/resource_registry.h"

namespace sluice {

struct MadeMemory {
  std::vector<UniqueFd> fds;
  uint64_t allocation_bytes = 0;
  DeviceUuid device_uuid = {};
};

class MemoryMaker {
 public:
  // kUnimplemented: this host has no such memory, the message says what is missing.
  absl::StatusOr<MadeMemory> Make(ResourceBacking backing, uint64_t size_bytes);

 private:
  absl::StatusOr<MadeMemory> MakeVulkan(uint64_t size_bytes);

  // Opened with the first need. A failure is kept: loading drivers again and again helps nobody.
  std::optional<absl::StatusOr<std::shared_ptr<ExternalMemoryDevice>>> vulkan_;
};

}  // namespace sluice
