// SPDX-License-Identifier: Apache-2.0
//
// The Vulkan behind daemon/helpers/external_memory.h: the loader, opened at run time, an instance,
// and a device with the extensions that export memory. Inside platform_linux only. Owned by an
// ExternalMemoryDevice; thread-safe once made: its one queue has a mutex.
#pragma once

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "broker/os/dynamic_library.h"
#include "daemon/helpers/external_memory.h"

namespace sluice::os {

// One of Vulkan's structures, all zero but for its type and what it is chained to.
template <typename T>
T VulkanStruct(VkStructureType type, void* next = nullptr) {
  T made = {};
  made.sType = type;
  made.pNext = next;
  return made;
}

// "vkAllocateMemory: VK_ERROR_OUT_OF_DEVICE_MEMORY (-2)", with a code that fits.
absl::Status VulkanStatus(VkResult result, const std::string& what);

struct ExternalMemoryDevice::Vulkan {
  Vulkan() = default;
  ~Vulkan();

  absl::Status OpenLoader();
  // `rank` gives the device's rank, 0 if it is not suitable; `wanted` says in words which is.
  using Rank = std::function<int(const VkPhysicalDeviceProperties&, const DeviceUuid&)>;
  absl::Status ChoosePhysicalDevice(const Rank& rank, const std::string& wanted);
  absl::Status CreateDevice();
  absl::Status CreateCommands();

  // Fills the buffer with zeros, which others who open its memory see afterwards; waits for that.
  // kDeadlineExceeded: the device still works on it, and it must not be destroyed.
  absl::Status Clear(VkBuffer buffer) ABSL_LOCKS_EXCLUDED(queue_mu);

  bool HasExtension(const char* name) const;
  // True if the driver says that such a buffer can be exported.
  bool BufferIsExportable(VkExternalMemoryHandleTypeFlagBits type, bool* dedicated_only) const;
  bool SemaphoreIsExportable() const;
  // Of the allowed types, the one to allocate from: host-visible and coherent memory on a device
  // that runs on the CPU, device-local memory elsewhere.
  std::optional<uint32_t> MemoryType(uint32_t allowed) const;
  bool IsHostVisible(uint32_t type) const;

  DynamicLibrary library;
  VkInstance instance = VK_NULL_HANDLE;
  VkPhysicalDevice physical = VK_NULL_HANDLE;
  VkDevice device = VK_NULL_HANDLE;
  VkPhysicalDeviceProperties properties = {};
  VkPhysicalDeviceIDProperties ids = {};
  VkPhysicalDeviceMemoryProperties memory_properties = {};
  uint64_t max_allocation_bytes = 0;
  std::vector<VkExtensionProperties> extensions;
  uint32_t queue_family = 0;

  absl::Mutex queue_mu;
  VkQueue queue ABSL_GUARDED_BY(queue_mu) = VK_NULL_HANDLE;
  VkCommandPool pool ABSL_GUARDED_BY(queue_mu) = VK_NULL_HANDLE;
  VkCommandBuffer commands ABSL_GUARDED_BY(queue_mu) = VK_NULL_HANDLE;
  VkFence finished ABSL_GUARDED_BY(queue_mu) = VK_NULL_HANDLE;
  bool stuck ABSL_GUARDED_BY(queue_mu) = false;  // It did not finish what it was given.

#define SLUICE_VULKAN_GLOBAL(f) f(vkEnumerateInstanceVersion) f(vkCreateInstance)
#define SLUICE_VULKAN_INSTANCE(f)                                                        \
  f(vkDestroyInstance) f(vkEnumeratePhysicalDevices) f(vkGetPhysicalDeviceProperties2)   \
      f(vkGetPhysicalDeviceMemoryProperties) f(vkGetPhysicalDeviceQueueFamilyProperties) \
          f(vkEnumerateDeviceExtensionProperties) f(vkCreateDevice)                      \
              f(vkGetPhysicalDeviceExternalBufferProperties)                             \
                  f(vkGetPhysicalDeviceExternalSemaphoreProperties) f(vkGetDeviceProcAddr)
#define SLUICE_VULKAN_DEVICE(f)                                                                    \
  f(vkDestroyDevice) f(vkCreateBuffer) f(vkDestroyBuffer) f(vkGetBufferMemoryRequirements2)        \
      f(vkBindBufferMemory) f(vkAllocateMemory) f(vkFreeMemory) f(vkMapMemory) f(vkGetMemoryFdKHR) \
          f(vkCreateSemaphore) f(vkDestroySemaphore) f(vkGetDeviceQueue) f(vkCreateCommandPool)    \
              f(vkDestroyCommandPool) f(vkAllocateCommandBuffers) f(vkBeginCommandBuffer)          \
                  f(vkEndCommandBuffer) f(vkCmdFillBuffer) f(vkCmdPipelineBarrier)                 \
                      f(vkQueueSubmit) f(vkCreateFence) f(vkDestroyFence) f(vkResetFences)         \
                          f(vkWaitForFences)
#define SLUICE_VULKAN_MEMBER(name) PFN_##name name = nullptr;
  SLUICE_VULKAN_GLOBAL(SLUICE_VULKAN_MEMBER)
  SLUICE_VULKAN_INSTANCE(SLUICE_VULKAN_MEMBER)
  SLUICE_VULKAN_DEVICE(SLUICE_VULKAN_MEMBER)
  SLUICE_VULKAN_MEMBER(vkGetSemaphoreFdKHR)  // Null unless semaphores can be exported.
#undef SLUICE_VULKAN_MEMBER
};

}  // namespace sluice::os
