// SPDX-License-Identifier: Apache-2.0
#include "daemon/helpers/external_memory.h"

#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"

namespace sluice::os {

// Windows has no such memory here yet (README.md): Open finds no device, so that the other
// functions are never called.
struct ExternalMemory::Objects {};
struct ExternalSemaphore::Objects {};
struct ExternalMemoryDevice::Vulkan {};

std::string UuidText(const DeviceUuid& uuid) {
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(uuid.data()), uuid.size()));
}

ExternalMemory::~ExternalMemory() = default;
ExternalSemaphore::~ExternalSemaphore() = default;
ExternalMemoryDevice::~ExternalMemoryDevice() = default;

absl::StatusOr<std::shared_ptr<ExternalMemoryDevice>> ExternalMemoryDevice::Open(
    const std::optional<DeviceUuid>&) {
  return absl::UnimplementedError(
      "no memory is shared with graphics APIs by handle on Windows yet");
}

absl::StatusOr<UniqueFd> ExternalMemory::Export() const {
  return absl::UnimplementedError("no memory is exported on Windows yet");
}

absl::StatusOr<UniqueFd> ExternalSemaphore::Export() const {
  return absl::UnimplementedError("no semaphore is exported on Windows yet");
}

absl::StatusOr<std::unique_ptr<ExternalMemory>> ExternalMemoryDevice::AllocateBuffer(
    uint64_t, ExternalHandle) const {
  return absl::UnimplementedError("no memory is exported on Windows yet");
}

absl::StatusOr<std::unique_ptr<ExternalSemaphore>> ExternalMemoryDevice::CreateSemaphore() const {
  return absl::UnimplementedError("no semaphore is exported on Windows yet");
}

}  // namespace sluice::os
