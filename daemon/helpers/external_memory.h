// SPDX-License-Identifier: Apache-2.0
//
// Memory of a graphics device that other processes and other APIs can open: OpenGL through
// GL_EXT_memory_object_fd, OpenCL through cl_khr_external_memory_opaque_fd. Made with Vulkan, whose
// loader is opened at run time: a machine without it has no such memory, and the status says so.
// The device is chosen by its UUID, which the APIs agree on; for an OpenCL device on the CPU it is
// the Vulkan device that runs there (lavapipe), whose memory is the host's. Where the user of the
// memory is not known yet, it is a GPU if there is one.
//
// Its owner is a worker (the shadows of its client's GL objects), or the allocator. An exported
// descriptor is a new one each time and belongs to the caller; what it refers to lives as long as
// any process holds it. Nothing here comes from a peer but sizes, which are bounded by the device's
// limits; whoever opens an exported descriptor can read and write all of the memory.
//
// Thread-safe, all of it. Memory is cleared by its device, for which its maker waits, 5 s at most;
// no other call waits. An exported descriptor's bytes are the
// driver's business (lavapipe's begin with a header of its own, which an importer believes):
// host() is the memory, and who maps a descriptor has asked OffsetInDescriptor.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "broker/os/scoped_handle.h"

namespace sluice::os {

// As in CL_DEVICE_UUID_KHR, GL_DEVICE_UUID_EXT and VkPhysicalDeviceIDProperties.
using DeviceUuid = std::array<uint8_t, 16>;

// Lower-case hexadecimal, for messages.
std::string UuidText(const DeviceUuid& uuid);

// The kind of an exported descriptor. An opaque one can be opened only by the same driver on the
// same device; a dma-buf by any that takes its layout.
enum class ExternalHandle { kOpaqueFd, kDmaBuf };

class ExternalMemoryDevice;

// One allocation. Its bytes are zero at first, to its very end: whoever opens a descriptor may see
// all of them.
class ExternalMemory {
 public:
  ~ExternalMemory();
  ExternalMemory(const ExternalMemory&) = delete;
  ExternalMemory& operator=(const ExternalMemory&) = delete;

  uint64_t size_bytes() const { return size_bytes_; }  // The size that was asked for.
  // The size of the memory that an importer must name. Larger than size_bytes by some slack:
  // drivers may take no buffer that fills the imported memory.
  uint64_t allocation_bytes() const { return allocation_bytes_; }
  ExternalHandle kind() const { return kind_; }
  bool dedicated() const { return dedicated_; }  // An importer must say so as well.
  // The memory's address in this process; null unless the device shares the host's memory.
  uint8_t* host() const { return host_; }

  absl::StatusOr<UniqueFd> Export() const;

  // Makes all of the allocation zero again. An error: not so; nobody may get it.
  absl::Status Clear();

  // Where the bytes of host() begin in a descriptor that Export gave, for others who map it; found
  // out by looking, not by knowing the driver. The first and last bytes are zero afterwards: call
  // it before anybody uses the memory. kFailedPrecondition: the descriptor is not to be mapped.
  absl::StatusOr<uint64_t> OffsetInDescriptor(int fd) const;

 private:
  friend class ExternalMemoryDevice;
  explicit ExternalMemory(std::shared_ptr<const ExternalMemoryDevice> device);

  struct Objects;
  const std::shared_ptr<const ExternalMemoryDevice> device_;
  const std::unique_ptr<Objects> objects_;
  uint64_t size_bytes_ = 0;
  uint64_t allocation_bytes_ = 0;
  ExternalHandle kind_ = ExternalHandle::kOpaqueFd;
  bool dedicated_ = false;
  uint8_t* host_ = nullptr;
};

// A binary semaphore for GL_EXT_semaphore_fd and cl_khr_external_semaphore_opaque_fd.
class ExternalSemaphore {
 public:
  ~ExternalSemaphore();
  ExternalSemaphore(const ExternalSemaphore&) = delete;
  ExternalSemaphore& operator=(const ExternalSemaphore&) = delete;

  absl::StatusOr<UniqueFd> Export() const;

 private:
  friend class ExternalMemoryDevice;
  explicit ExternalSemaphore(std::shared_ptr<const ExternalMemoryDevice> device);

  struct Objects;
  const std::shared_ptr<const ExternalMemoryDevice> device_;
  const std::unique_ptr<Objects> objects_;
};

class ExternalMemoryDevice : public std::enable_shared_from_this<ExternalMemoryDevice> {
 public:
  // The device with this UUID; without one, the first that runs on the CPU. kNotFound: there is no
  // Vulkan loader, or no such device; kUnimplemented: it exports no memory. The message names what
  // is missing.
  static absl::StatusOr<std::shared_ptr<ExternalMemoryDevice>> Open(
      const std::optional<DeviceUuid>& uuid);
  // The best that there is: a discrete GPU, another, the CPU.
  static absl::StatusOr<std::shared_ptr<ExternalMemoryDevice>> OpenBest();
  ~ExternalMemoryDevice();
  ExternalMemoryDevice(const ExternalMemoryDevice&) = delete;
  ExternalMemoryDevice& operator=(const ExternalMemoryDevice&) = delete;

  const std::string& name() const { return name_; }
  const DeviceUuid& device_uuid() const { return device_uuid_; }
  const DeviceUuid& driver_uuid() const { return driver_uuid_; }
  bool is_cpu() const { return is_cpu_; }
  bool exports_dma_buf() const { return exports_dma_buf_; }
  bool exports_semaphores() const { return exports_semaphores_; }

  // kInvalidArgument: a size of 0 or over the device's limit; kUnimplemented: the device exports
  // nothing of that kind; kResourceExhausted: no memory; any other error: it cannot be cleared.
  absl::StatusOr<std::unique_ptr<ExternalMemory>> AllocateBuffer(uint64_t size_bytes,
                                                                 ExternalHandle kind) const;
  // kUnimplemented: the device exports none.
  absl::StatusOr<std::unique_ptr<ExternalSemaphore>> CreateSemaphore() const;

 private:
  friend class ExternalMemory;
  friend class ExternalSemaphore;

  struct Vulkan;  // The loader, its functions, instance and device.
  explicit ExternalMemoryDevice(std::unique_ptr<Vulkan> vulkan);
  static absl::StatusOr<std::shared_ptr<ExternalMemoryDevice>> Finish(
      std::unique_ptr<Vulkan> vulkan);
  // A buffer of allocation_bytes(), which says what memory it needs.
  absl::StatusOr<uint32_t> CreateBuffer(ExternalMemory* memory, uint64_t* needed_bytes) const;
  absl::Status Allocate(uint32_t memory_types, ExternalMemory* memory) const;

  const std::unique_ptr<Vulkan> vulkan_;
  std::string name_;
  DeviceUuid device_uuid_ = {};
  DeviceUuid driver_uuid_ = {};
  bool is_cpu_ = false;
  bool exports_dma_buf_ = false;
  bool exports_semaphores_ = false;
};

}  // namespace sluice::os
