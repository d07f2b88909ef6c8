// SPDX-License-Identifier: Apache-2.0
//
// Makes the memory behind daemon-owned resources, of whatever kinds this host has: memfds, dma-heap
// or udmabuf, Vulkan's exportable memory; on Windows sections and Direct3D's textures. All of it is
// zero when it leaves here, so that no user sees another's bytes. Implemented in
// platform_*/allocator.
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
#include "broker/os/scoped_handle.h"
#include "daemon/helpers/external_memory.h"
#include "proto/resource_messages.h"

namespace sluice::allocator {

struct MadeMemory {
  std::vector<os::UniqueFd> fds;
  uint64_t allocation_bytes = 0;
  os::DeviceUuid device_uuid = {};
  // Of Vulkan's memory.
  os::DeviceUuid driver_uuid = {};
  std::optional<uint64_t>
      map_offset;  // ExternalMemory::OffsetInDescriptor; none: not to be mapped.
};

class MemoryMaker {
 public:
  static std::unique_ptr<MemoryMaker> Create();
  virtual ~MemoryMaker() = default;

  // kUnimplemented: this host has no such memory, the message says what is missing.
  virtual absl::StatusOr<MadeMemory> Make(wire::ResourceBacking backing, uint64_t size_bytes) = 0;
  // A resource of Direct3D's and its fence; as Make.
  virtual absl::StatusOr<MadeMemory> MakeTexture(const wire::AllocateTexture& request) = 0;
};

}  // namespace sluice::allocator
