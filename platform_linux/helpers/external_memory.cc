// SPDX-License-Identifier: Apache-2.0
#include "daemon/helpers/external_memory.h"

#include <fcntl.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "broker/os/foreign_memory.h"
#include "broker/os/random.h"
#include "broker/os/shared_memory.h"
#include "platform_linux/helpers/vulkan_device.h"
#include "proto/status_macros.h"

namespace sluice::os {
namespace {

// llvmpipe refuses a GL buffer that fills the imported memory to its end.
constexpr uint64_t kSlackBytes = 64 * 1024;
// Keeps sums of sizes from wrapping, whatever limits a driver reports.
constexpr uint64_t kMostBytes = uint64_t{1} << 48;

VkExternalMemoryHandleTypeFlagBits TypeOf(ExternalHandle kind) {
  return kind == ExternalHandle::kDmaBuf ? VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT
                                         : VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
}

// A device's memory is set aside, and opened by an importer, in pages of up to this size. The last
// one is cleared to its end because it is the buffer's.
uint64_t WholePages(uint64_t bytes) {
  constexpr uint64_t kPage = 64 * 1024, kLargePage = 2 * 1024 * 1024;
  const uint64_t page = bytes < kLargePage ? kPage : kLargePage;
  return (bytes + page - 1) / page * page;
}

// Some drivers make descriptors that are inherited over exec.
UniqueFd TakeCloseOnExec(int fd) {
  UniqueFd owned(fd);
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  return owned;
}

// Bytes that nobody else has, written over zeros; zeros again in the end.
class Mark {
 public:
  static constexpr uint64_t kSize = 32;

  ~Mark() {
    if (at_ != nullptr) std::memset(at_, 0, kSize);
  }
  absl::Status SetAt(uint8_t* at) {
    RETURN_IF_ERROR(FillRandom(bytes_, kSize));
    at_ = at;
    std::memcpy(at_, bytes_, kSize);
    return absl::OkStatus();
  }
  const uint8_t* begin() const { return bytes_; }
  const uint8_t* end() const { return bytes_ + kSize; }

 private:
  uint8_t bytes_[kSize] = {};
  uint8_t* at_ = nullptr;
};

const char* NameOf(ExternalHandle kind) {
  return kind == ExternalHandle::kDmaBuf ? "dma-buf" : "opaque descriptor";
}

}  // namespace

struct ExternalMemory::Objects {
  VkBuffer buffer = VK_NULL_HANDLE;
  VkDeviceMemory memory = VK_NULL_HANDLE;
};

struct ExternalSemaphore::Objects {
  VkSemaphore semaphore = VK_NULL_HANDLE;
};

std::string UuidText(const DeviceUuid& uuid) {
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(uuid.data()), uuid.size()));
}

ExternalMemoryDevice::ExternalMemoryDevice(std::unique_ptr<Vulkan> vulkan)
    : vulkan_(std::move(vulkan)) {
  bool unused_dedicated = false;
  name_ = vulkan_->properties.deviceName;
  std::copy_n(vulkan_->ids.deviceUUID, device_uuid_.size(), device_uuid_.begin());
  std::copy_n(vulkan_->ids.driverUUID, driver_uuid_.size(), driver_uuid_.begin());
  is_cpu_ = vulkan_->properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
  exports_dma_buf_ =
      vulkan_->HasExtension(VK_EXT_EXTERNAL_MEMORY_DMA_BUF_EXTENSION_NAME) &&
      vulkan_->BufferIsExportable(TypeOf(ExternalHandle::kDmaBuf), &unused_dedicated);
  exports_semaphores_ = vulkan_->SemaphoreIsExportable();
}

ExternalMemoryDevice::~ExternalMemoryDevice() = default;

absl::StatusOr<std::shared_ptr<ExternalMemoryDevice>> ExternalMemoryDevice::Open(
    const std::optional<DeviceUuid>& uuid) {
  auto vulkan = std::make_unique<Vulkan>();
  RETURN_IF_ERROR(vulkan->OpenLoader());
  RETURN_IF_ERROR(vulkan->ChoosePhysicalDevice(
      [&uuid](const VkPhysicalDeviceProperties& properties, const DeviceUuid& its) {
        if (uuid.has_value()) return its == *uuid ? 1 : 0;
        return properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU ? 1 : 0;
      },
      uuid.has_value() ? absl::StrCat("with the UUID ", UuidText(*uuid))
                       : "that runs on the CPU (install mesa-vulkan-drivers)"));
  return Finish(std::move(vulkan));
}

absl::StatusOr<std::shared_ptr<ExternalMemoryDevice>> ExternalMemoryDevice::OpenBest() {
  auto vulkan = std::make_unique<Vulkan>();
  RETURN_IF_ERROR(vulkan->OpenLoader());
  RETURN_IF_ERROR(vulkan->ChoosePhysicalDevice(
      [](const VkPhysicalDeviceProperties& properties, const DeviceUuid&) {
        if (properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU) return 3;
        return properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU ? 1 : 2;
      },
      "at all (install its driver, or mesa-vulkan-drivers)"));
  return Finish(std::move(vulkan));
}

absl::StatusOr<std::shared_ptr<ExternalMemoryDevice>> ExternalMemoryDevice::Finish(
    std::unique_ptr<Vulkan> vulkan) {
  RETURN_IF_ERROR(vulkan->CreateDevice());
  bool unused_dedicated = false;
  if (!vulkan->BufferIsExportable(TypeOf(ExternalHandle::kOpaqueFd), &unused_dedicated)) {
    return absl::UnimplementedError(
        absl::StrCat(vulkan->properties.deviceName, " exports no buffer as an opaque descriptor"));
  }
  return std::shared_ptr<ExternalMemoryDevice>(new ExternalMemoryDevice(std::move(vulkan)));
}

absl::StatusOr<uint32_t> ExternalMemoryDevice::CreateBuffer(ExternalMemory* memory,
                                                            uint64_t* needed_bytes) const {
  const Vulkan& vk = *vulkan_;
  VkBuffer* const buffer = &memory->objects_->buffer;
  vk.vkDestroyBuffer(vk.device, std::exchange(*buffer, VK_NULL_HANDLE), nullptr);
  auto external = VulkanStruct<VkExternalMemoryBufferCreateInfo>(
      VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO);
  external.handleTypes = static_cast<VkExternalMemoryHandleTypeFlags>(TypeOf(memory->kind_));
  auto create = VulkanStruct<VkBufferCreateInfo>(VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, &external);
  create.size = memory->allocation_bytes_;
  create.usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT |
                 VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
  create.sharingMode = VK_SHARING_MODE_EXCLUSIVE;
  RETURN_IF_ERROR(
      VulkanStatus(vk.vkCreateBuffer(vk.device, &create, nullptr, buffer), "vkCreateBuffer"));
  auto dedicated =
      VulkanStruct<VkMemoryDedicatedRequirements>(VK_STRUCTURE_TYPE_MEMORY_DEDICATED_REQUIREMENTS);
  auto needs =
      VulkanStruct<VkMemoryRequirements2>(VK_STRUCTURE_TYPE_MEMORY_REQUIREMENTS_2, &dedicated);
  const VkBufferMemoryRequirementsInfo2 about = {
      VK_STRUCTURE_TYPE_BUFFER_MEMORY_REQUIREMENTS_INFO_2, nullptr, *buffer};
  vk.vkGetBufferMemoryRequirements2(vk.device, &about, &needs);
  if (dedicated.requiresDedicatedAllocation != VK_FALSE) memory->dedicated_ = true;
  *needed_bytes = needs.memoryRequirements.size;
  return needs.memoryRequirements.memoryTypeBits;
}

absl::Status ExternalMemoryDevice::Allocate(uint32_t memory_types, ExternalMemory* memory) const {
  const Vulkan& vk = *vulkan_;
  const std::optional<uint32_t> type = vk.MemoryType(memory_types);
  if (!type.has_value()) {
    return absl::UnimplementedError(absl::StrCat(name_, " has no memory of a kind that suits"));
  }
  auto dedicated =
      VulkanStruct<VkMemoryDedicatedAllocateInfo>(VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO);
  dedicated.buffer = memory->objects_->buffer;
  auto exported = VulkanStruct<VkExportMemoryAllocateInfo>(
      VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO, memory->dedicated_ ? &dedicated : nullptr);
  exported.handleTypes = static_cast<VkExternalMemoryHandleTypeFlags>(TypeOf(memory->kind_));
  auto allocate =
      VulkanStruct<VkMemoryAllocateInfo>(VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, &exported);
  allocate.allocationSize = memory->allocation_bytes_;
  allocate.memoryTypeIndex = *type;
  VkDeviceMemory* const made = &memory->objects_->memory;
  if (const VkResult result = vk.vkAllocateMemory(vk.device, &allocate, nullptr, made);
      result != VK_SUCCESS) {
    *made = VK_NULL_HANDLE;
    return VulkanStatus(result, absl::StrCat("vkAllocateMemory of ", memory->allocation_bytes_,
                                             " bytes on ", name_));
  }
  RETURN_IF_ERROR(VulkanStatus(vk.vkBindBufferMemory(vk.device, memory->objects_->buffer, *made, 0),
                               "vkBindBufferMemory"));
  if (!is_cpu_ || !vk.IsHostVisible(*type)) return absl::OkStatus();
  void* mapped = nullptr;
  RETURN_IF_ERROR(
      VulkanStatus(vk.vkMapMemory(vk.device, *made, 0, VK_WHOLE_SIZE, 0, &mapped), "vkMapMemory"));
  memory->host_ = static_cast<uint8_t*>(mapped);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ExternalMemory>> ExternalMemoryDevice::AllocateBuffer(
    uint64_t size_bytes, ExternalHandle kind) const {
  const uint64_t most = std::min(vulkan_->max_allocation_bytes, kMostBytes);
  if (size_bytes == 0 || size_bytes > most || WholePages(size_bytes + kSlackBytes) > most) {
    return absl::InvalidArgumentError(
        absl::StrCat("exportable memory of ", size_bytes, " bytes; ", name_, " allows ", most));
  }
  std::unique_ptr<ExternalMemory> memory(new ExternalMemory(shared_from_this()));
  memory->kind_ = kind;
  memory->size_bytes_ = size_bytes;
  memory->allocation_bytes_ = WholePages(size_bytes + kSlackBytes);
  if ((kind == ExternalHandle::kDmaBuf && !exports_dma_buf_) ||
      !vulkan_->BufferIsExportable(TypeOf(kind), &memory->dedicated_)) {
    return absl::UnimplementedError(absl::StrCat(name_, " exports no buffer as a ", NameOf(kind)));
  }
  uint64_t needed_bytes = 0;
  ASSIGN_OR_RETURN(uint32_t types, CreateBuffer(memory.get(), &needed_bytes));
  // The buffer is cleared, and it must be all of its memory.
  if (needed_bytes != std::exchange(memory->allocation_bytes_, needed_bytes)) {
    ASSIGN_OR_RETURN(types, CreateBuffer(memory.get(), &needed_bytes));
  }
  if (needed_bytes != memory->allocation_bytes_) {
    return absl::UnimplementedError(
        absl::StrCat(name_, " wants more memory than a buffer fills, which could not be cleared"));
  }
  RETURN_IF_ERROR(Allocate(types, memory.get()));
  RETURN_IF_ERROR(memory->Clear());
  return memory;
}

ExternalMemory::ExternalMemory(std::shared_ptr<const ExternalMemoryDevice> device)
    : device_(std::move(device)), objects_(std::make_unique<Objects>()) {}

ExternalMemory::~ExternalMemory() {
  const ExternalMemoryDevice::Vulkan& vk = *device_->vulkan_;
  vk.vkDestroyBuffer(vk.device, objects_->buffer, nullptr);
  vk.vkFreeMemory(vk.device, objects_->memory, nullptr);  // Unmaps it, too.
}

absl::StatusOr<UniqueFd> ExternalMemory::Export() const {
  const ExternalMemoryDevice::Vulkan& vk = *device_->vulkan_;
  auto get = VulkanStruct<VkMemoryGetFdInfoKHR>(VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR);
  get.memory = objects_->memory;
  get.handleType = TypeOf(kind_);
  int fd = -1;
  RETURN_IF_ERROR(VulkanStatus(vk.vkGetMemoryFdKHR(vk.device, &get, &fd), "vkGetMemoryFdKHR"));
  return TakeCloseOnExec(fd);
}

absl::Status ExternalMemory::Clear() {
  const absl::Status cleared = device_->vulkan_->Clear(objects_->buffer);
  // The device still works on these objects: they may not be destroyed, and end with the process.
  if (absl::IsDeadlineExceeded(cleared)) *objects_ = {};
  return cleared;
}

absl::StatusOr<uint64_t> ExternalMemory::OffsetInDescriptor(int fd) const {
  if (host_ == nullptr) return absl::FailedPreconditionError("it is not the host's memory");
  ASSIGN_OR_RETURN(const ForeignMemory memory, DescribeForeignMemory(fd));
  if (!memory.mappable() || memory.size_bytes < allocation_bytes_)
    return absl::FailedPreconditionError("its descriptor is no memory of fixed size");
  ASSIGN_OR_RETURN(const SharedMapping mapped,
                   SharedMapping::Map(fd, memory.size_bytes, /*writable=*/false));
  const uint64_t last_at = allocation_bytes_ - Mark::kSize;  // It has kSlackBytes at least.
  Mark first, last;
  RETURN_IF_ERROR(first.SetAt(host_));
  RETURN_IF_ERROR(last.SetAt(host_ + last_at));
  const uint8_t* const begin = mapped.data();
  const uint8_t* const end = begin + (memory.size_bytes - last_at);
  const uint8_t* const found = std::search(begin, end, first.begin(), first.end());
  if (found == end || !std::equal(last.begin(), last.end(), found + last_at))
    return absl::FailedPreconditionError(
        "its bytes are not in the descriptor, or not in one piece");
  return static_cast<uint64_t>(found - begin);
}

absl::StatusOr<std::unique_ptr<ExternalSemaphore>> ExternalMemoryDevice::CreateSemaphore() const {
  if (!exports_semaphores_) {
    return absl::UnimplementedError(
        absl::StrCat(name_, " exports no semaphore (VK_KHR_external_semaphore_fd)"));
  }
  const Vulkan& vk = *vulkan_;
  std::unique_ptr<ExternalSemaphore> semaphore(new ExternalSemaphore(shared_from_this()));
  VkExportSemaphoreCreateInfo exported = {VK_STRUCTURE_TYPE_EXPORT_SEMAPHORE_CREATE_INFO, nullptr,
                                          VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT};
  const VkSemaphoreCreateInfo create = {VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, &exported, 0};
  RETURN_IF_ERROR(VulkanStatus(
      vk.vkCreateSemaphore(vk.device, &create, nullptr, &semaphore->objects_->semaphore),
      "vkCreateSemaphore"));
  return semaphore;
}

ExternalSemaphore::ExternalSemaphore(std::shared_ptr<const ExternalMemoryDevice> device)
    : device_(std::move(device)), objects_(std::make_unique<Objects>()) {}

ExternalSemaphore::~ExternalSemaphore() {
  const ExternalMemoryDevice::Vulkan& vk = *device_->vulkan_;
  vk.vkDestroySemaphore(vk.device, objects_->semaphore, nullptr);
}

absl::StatusOr<UniqueFd> ExternalSemaphore::Export() const {
  const ExternalMemoryDevice::Vulkan& vk = *device_->vulkan_;
  auto get = VulkanStruct<VkSemaphoreGetFdInfoKHR>(VK_STRUCTURE_TYPE_SEMAPHORE_GET_FD_INFO_KHR);
  get.semaphore = objects_->semaphore;
  get.handleType = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT;
  int fd = -1;
  RETURN_IF_ERROR(
      VulkanStatus(vk.vkGetSemaphoreFdKHR(vk.device, &get, &fd), "vkGetSemaphoreFdKHR"));
  return TakeCloseOnExec(fd);
}

}  // namespace sluice::os
