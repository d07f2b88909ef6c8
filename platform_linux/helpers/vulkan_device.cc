// SPDX-License-Identifier: Apache-2.0
#include "platform_linux/helpers/vulkan_device.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "proto/status_macros.h"

namespace sluice::os {
namespace {

constexpr char kLoader[] = "libvulkan.so.1";

// A device fills its memory within tens of milliseconds; the allocator has 10 s for an answer.
constexpr uint64_t kClearTimeoutNs = 5'000'000'000;

DeviceUuid ToUuid(const uint8_t (&bytes)[VK_UUID_SIZE]) {
  DeviceUuid uuid;
  std::copy(std::begin(bytes), std::end(bytes), uuid.begin());
  return uuid;
}

}  // namespace

absl::Status VulkanStatus(VkResult result, const std::string& what) {
  const std::string message = absl::StrCat(what, ": VkResult ", static_cast<int>(result));
  switch (result) {
    case VK_SUCCESS:
      return absl::OkStatus();
    case VK_ERROR_OUT_OF_HOST_MEMORY:
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
    case VK_ERROR_TOO_MANY_OBJECTS:
      return absl::ResourceExhaustedError(message);
    case VK_ERROR_INCOMPATIBLE_DRIVER:
    case VK_ERROR_INITIALIZATION_FAILED:
      return absl::NotFoundError(message);
    case VK_ERROR_EXTENSION_NOT_PRESENT:
    case VK_ERROR_FEATURE_NOT_PRESENT:
    case VK_ERROR_FORMAT_NOT_SUPPORTED:
      return absl::UnimplementedError(message);
    case VK_TIMEOUT:
      return absl::DeadlineExceededError(message);
    default:
      return absl::InternalError(message);
  }
}

ExternalMemoryDevice::Vulkan::~Vulkan() {
  absl::MutexLock lock(&queue_mu);
  if (stuck) return;
  if (device != VK_NULL_HANDLE && vkDestroyFence != nullptr)
    vkDestroyFence(device, finished, nullptr);
  if (device != VK_NULL_HANDLE && vkDestroyCommandPool != nullptr)
    vkDestroyCommandPool(device, pool, nullptr);
  if (device != VK_NULL_HANDLE) vkDestroyDevice(device, nullptr);
  if (instance != VK_NULL_HANDLE) vkDestroyInstance(instance, nullptr);
}

absl::Status ExternalMemoryDevice::Vulkan::OpenLoader() {
  absl::StatusOr<DynamicLibrary> opened = DynamicLibrary::Open(kLoader);
  if (!opened.ok()) return opened.status();
  library = *std::move(opened);
  library.KeepForever();  // Drivers start threads.
  const auto get =
      reinterpret_cast<PFN_vkGetInstanceProcAddr>(library.Find("vkGetInstanceProcAddr"));
  if (get == nullptr) {
    return absl::NotFoundError(absl::StrCat(kLoader, " has no vkGetInstanceProcAddr"));
  }
#define SLUICE_VULKAN_LOAD(name) name = reinterpret_cast<PFN_##name>(get(nullptr, #name));
  SLUICE_VULKAN_GLOBAL(SLUICE_VULKAN_LOAD)
#undef SLUICE_VULKAN_LOAD
  uint32_t version = VK_API_VERSION_1_0;
  if (vkEnumerateInstanceVersion != nullptr) vkEnumerateInstanceVersion(&version);
  if (vkCreateInstance == nullptr || version < VK_API_VERSION_1_1) {
    return absl::NotFoundError("the Vulkan loader is older than Vulkan 1.1");
  }
  auto application = VulkanStruct<VkApplicationInfo>(VK_STRUCTURE_TYPE_APPLICATION_INFO);
  application.pApplicationName = "sluice";
  application.apiVersion = VK_API_VERSION_1_1;
  auto create = VulkanStruct<VkInstanceCreateInfo>(VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO);
  create.pApplicationInfo = &application;
  if (const VkResult result = vkCreateInstance(&create, nullptr, &instance); result != VK_SUCCESS) {
    instance = VK_NULL_HANDLE;
    return VulkanStatus(result, "vkCreateInstance (no Vulkan driver?)");
  }
  bool complete = true;
#define SLUICE_VULKAN_LOAD(name)                             \
  name = reinterpret_cast<PFN_##name>(get(instance, #name)); \
  complete = complete && name != nullptr;
  SLUICE_VULKAN_INSTANCE(SLUICE_VULKAN_LOAD)
#undef SLUICE_VULKAN_LOAD
  return complete ? absl::OkStatus()
                  : absl::NotFoundError("the Vulkan loader lacks functions of Vulkan 1.1");
}

absl::Status ExternalMemoryDevice::Vulkan::ChoosePhysicalDevice(const Rank& rank,
                                                                const std::string& wanted) {
  uint32_t count = 0;
  VkResult result = vkEnumeratePhysicalDevices(instance, &count, nullptr);
  std::vector<VkPhysicalDevice> handles(count);
  if (result == VK_SUCCESS && count != 0) {
    result = vkEnumeratePhysicalDevices(instance, &count, handles.data());
    handles.resize(count);
  }
  if (result != VK_SUCCESS && result != VK_INCOMPLETE) {
    return VulkanStatus(result, "vkEnumeratePhysicalDevices");
  }
  std::string seen;
  int best = 0;
  for (const VkPhysicalDevice handle : handles) {
    auto its_ids =
        VulkanStruct<VkPhysicalDeviceIDProperties>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES);
    auto limits = VulkanStruct<VkPhysicalDeviceMaintenance3Properties>(
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES, &its_ids);
    auto all = VulkanStruct<VkPhysicalDeviceProperties2>(
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &limits);
    vkGetPhysicalDeviceProperties2(handle, &all);
    const DeviceUuid uuid = ToUuid(its_ids.deviceUUID);
    absl::StrAppend(&seen, seen.empty() ? "" : "; ", all.properties.deviceName, " ",
                    UuidText(uuid));
    const int worth = rank(all.properties, uuid);
    if (all.properties.apiVersion < VK_API_VERSION_1_1 || worth <= best) continue;
    best = worth;
    physical = handle;
    properties = all.properties;
    ids = its_ids;
    max_allocation_bytes = limits.maxMemoryAllocationSize;
  }
  if (best == 0) {
    return absl::NotFoundError(
        absl::StrCat("no Vulkan device ", wanted, "; there is: ", seen.empty() ? "none" : seen));
  }
  vkGetPhysicalDeviceMemoryProperties(physical, &memory_properties);
  return absl::OkStatus();
}

bool ExternalMemoryDevice::Vulkan::HasExtension(const char* name) const {
  return std::any_of(extensions.begin(), extensions.end(),
                     [name](const VkExtensionProperties& one) {
                       return std::strcmp(one.extensionName, name) == 0;
                     });
}

absl::Status ExternalMemoryDevice::Vulkan::CreateDevice() {
  uint32_t count = 0;
  VkResult result = vkEnumerateDeviceExtensionProperties(physical, nullptr, &count, nullptr);
  extensions.resize(count);
  if (result == VK_SUCCESS && count != 0) {
    result = vkEnumerateDeviceExtensionProperties(physical, nullptr, &count, extensions.data());
    extensions.resize(count);
  }
  if (result != VK_SUCCESS && result != VK_INCOMPLETE) {
    return VulkanStatus(result, "vkEnumerateDeviceExtensionProperties");
  }
  if (!HasExtension(VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME)) {
    return absl::UnimplementedError(
        absl::StrCat(properties.deviceName, " has no VK_KHR_external_memory_fd"));
  }
  std::vector<const char*> enabled = {VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME};
  for (const char* const optional : {VK_EXT_EXTERNAL_MEMORY_DMA_BUF_EXTENSION_NAME,
                                     VK_KHR_EXTERNAL_SEMAPHORE_FD_EXTENSION_NAME}) {
    if (HasExtension(optional)) enabled.push_back(optional);
  }
  const float priority = 1.0f;
  uint32_t families = 0;
  vkGetPhysicalDeviceQueueFamilyProperties(physical, &families, nullptr);
  std::vector<VkQueueFamilyProperties> about(families);
  vkGetPhysicalDeviceQueueFamilyProperties(physical, &families, about.data());
  // "the VkCommandPool ... must support transfer, graphics or compute operations"
  // (vkCmdFillBuffer), which of these every device has.
  const auto family =
      std::find_if(about.begin(), about.end(), [](const VkQueueFamilyProperties& one) {
        return (one.queueFlags & (VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT)) != 0;
      });
  if (family == about.end())
    return absl::UnimplementedError(absl::StrCat(properties.deviceName, " has no queue"));
  queue_family = static_cast<uint32_t>(family - about.begin());
  auto its_queue =
      VulkanStruct<VkDeviceQueueCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO);
  its_queue.queueFamilyIndex = queue_family;
  its_queue.queueCount = 1;
  its_queue.pQueuePriorities = &priority;
  auto create = VulkanStruct<VkDeviceCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO);
  create.queueCreateInfoCount = 1;
  create.pQueueCreateInfos = &its_queue;
  create.enabledExtensionCount = static_cast<uint32_t>(enabled.size());
  create.ppEnabledExtensionNames = enabled.data();
  result = vkCreateDevice(physical, &create, nullptr, &device);
  if (result != VK_SUCCESS) {
    device = VK_NULL_HANDLE;
    return VulkanStatus(result, absl::StrCat("vkCreateDevice on ", properties.deviceName));
  }
  bool complete = true;
#define SLUICE_VULKAN_LOAD(name)                                           \
  name = reinterpret_cast<PFN_##name>(vkGetDeviceProcAddr(device, #name)); \
  complete = complete && name != nullptr;
  SLUICE_VULKAN_DEVICE(SLUICE_VULKAN_LOAD)
#undef SLUICE_VULKAN_LOAD
  vkGetSemaphoreFdKHR =
      reinterpret_cast<PFN_vkGetSemaphoreFdKHR>(vkGetDeviceProcAddr(device, "vkGetSemaphoreFdKHR"));
  if (complete) return CreateCommands();
  return absl::UnimplementedError(
      absl::StrCat(properties.deviceName, " lacks functions of Vulkan 1.1"));
}

absl::Status ExternalMemoryDevice::Vulkan::CreateCommands() {
  absl::MutexLock lock(&queue_mu);
  vkGetDeviceQueue(device, queue_family, 0, &queue);
  auto pooled = VulkanStruct<VkCommandPoolCreateInfo>(VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO);
  pooled.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
  pooled.queueFamilyIndex = queue_family;
  RETURN_IF_ERROR(
      VulkanStatus(vkCreateCommandPool(device, &pooled, nullptr, &pool), "vkCreateCommandPool"));
  auto one =
      VulkanStruct<VkCommandBufferAllocateInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO);
  one.commandPool = pool;
  one.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  one.commandBufferCount = 1;
  RETURN_IF_ERROR(
      VulkanStatus(vkAllocateCommandBuffers(device, &one, &commands), "vkAllocateCommandBuffers"));
  const auto fence = VulkanStruct<VkFenceCreateInfo>(VK_STRUCTURE_TYPE_FENCE_CREATE_INFO);
  return VulkanStatus(vkCreateFence(device, &fence, nullptr, &finished), "vkCreateFence");
}

absl::Status ExternalMemoryDevice::Vulkan::Clear(VkBuffer buffer) {
  absl::MutexLock lock(&queue_mu);
  if (stuck)
    return absl::UnavailableError(absl::StrCat(properties.deviceName, " does not clear memory"));
  auto once = VulkanStruct<VkCommandBufferBeginInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO);
  once.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  RETURN_IF_ERROR(VulkanStatus(vkBeginCommandBuffer(commands, &once), "vkBeginCommandBuffer"));
  vkCmdFillBuffer(commands, buffer, 0, VK_WHOLE_SIZE, 0);
  // Makes the zeros visible to the host, if it has the memory mapped, and to other users of it.
  auto to_host = VulkanStruct<VkMemoryBarrier>(VK_STRUCTURE_TYPE_MEMORY_BARRIER);
  to_host.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
  to_host.dstAccessMask = VK_ACCESS_HOST_READ_BIT | VK_ACCESS_HOST_WRITE_BIT;
  auto given = VulkanStruct<VkBufferMemoryBarrier>(VK_STRUCTURE_TYPE_BUFFER_MEMORY_BARRIER);
  given.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
  given.srcQueueFamilyIndex = queue_family;
  given.dstQueueFamilyIndex = VK_QUEUE_FAMILY_EXTERNAL;
  given.buffer = buffer;
  given.size = VK_WHOLE_SIZE;
  vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1,
                       &to_host, 1, &given, 0, nullptr);
  RETURN_IF_ERROR(VulkanStatus(vkEndCommandBuffer(commands), "vkEndCommandBuffer"));
  RETURN_IF_ERROR(VulkanStatus(vkResetFences(device, 1, &finished), "vkResetFences"));
  auto submit = VulkanStruct<VkSubmitInfo>(VK_STRUCTURE_TYPE_SUBMIT_INFO);
  submit.commandBufferCount = 1;
  submit.pCommandBuffers = &commands;
  RETURN_IF_ERROR(VulkanStatus(vkQueueSubmit(queue, 1, &submit, finished), "vkQueueSubmit"));
  const VkResult waited = vkWaitForFences(device, 1, &finished, VK_TRUE, kClearTimeoutNs);
  stuck = waited == VK_TIMEOUT;
  return VulkanStatus(waited, absl::StrCat("clearing memory on ", properties.deviceName));
}

bool ExternalMemoryDevice::Vulkan::BufferIsExportable(VkExternalMemoryHandleTypeFlagBits type,
                                                      bool* dedicated_only) const {
  auto info = VulkanStruct<VkPhysicalDeviceExternalBufferInfo>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_BUFFER_INFO);
  info.usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT |
               VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
  info.handleType = type;
  auto answer =
      VulkanStruct<VkExternalBufferProperties>(VK_STRUCTURE_TYPE_EXTERNAL_BUFFER_PROPERTIES);
  vkGetPhysicalDeviceExternalBufferProperties(physical, &info, &answer);
  const VkExternalMemoryFeatureFlags features =
      answer.externalMemoryProperties.externalMemoryFeatures;
  *dedicated_only = (features & VK_EXTERNAL_MEMORY_FEATURE_DEDICATED_ONLY_BIT) != 0;
  return (features & VK_EXTERNAL_MEMORY_FEATURE_EXPORTABLE_BIT) != 0;
}

bool ExternalMemoryDevice::Vulkan::SemaphoreIsExportable() const {
  if (vkGetSemaphoreFdKHR == nullptr ||
      !HasExtension(VK_KHR_EXTERNAL_SEMAPHORE_FD_EXTENSION_NAME)) {
    return false;
  }
  auto info = VulkanStruct<VkPhysicalDeviceExternalSemaphoreInfo>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_SEMAPHORE_INFO);
  info.handleType = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT;
  auto answer =
      VulkanStruct<VkExternalSemaphoreProperties>(VK_STRUCTURE_TYPE_EXTERNAL_SEMAPHORE_PROPERTIES);
  vkGetPhysicalDeviceExternalSemaphoreProperties(physical, &info, &answer);
  return (answer.externalSemaphoreFeatures & VK_EXTERNAL_SEMAPHORE_FEATURE_EXPORTABLE_BIT) != 0;
}

std::optional<uint32_t> ExternalMemoryDevice::Vulkan::MemoryType(uint32_t allowed) const {
  constexpr VkMemoryPropertyFlags kHost =
      VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  constexpr VkMemoryPropertyFlags kDevice = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
  const VkMemoryPropertyFlags wanted =
      properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU ? kHost : kDevice;
  for (uint32_t i = 0; i < memory_properties.memoryTypeCount; ++i) {
    const VkMemoryPropertyFlags flags = memory_properties.memoryTypes[i].propertyFlags;
    if ((allowed >> i & 1) != 0 && (flags & wanted) == wanted) return i;
  }
  return std::nullopt;
}

bool ExternalMemoryDevice::Vulkan::IsHostVisible(uint32_t type) const {
  return (memory_properties.memoryTypes[type].propertyFlags &
          VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) != 0;
}

}  // namespace sluice::os
