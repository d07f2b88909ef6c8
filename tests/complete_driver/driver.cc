// SPDX-License-Identifier: Apache-2.0
// Loads PoCL and replaces functions of its table; what platform and devices say.
#include <dlfcn.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "tests/complete_driver/complete_driver.h"

namespace sluice::complete_driver {
namespace {

cl_icd_dispatch g_pocl;

constexpr const char* kExtensions[] = {
    "cl_khr_il_program",       "cl_khr_subgroups",    "cl_khr_image2d_from_buffer",
    "cl_khr_device_uuid",      "cl_khr_pci_bus_info", "cl_khr_suggested_local_work_size",
    "cl_khr_initialize_memory"};
constexpr const char* kFeatures[] = {"__opencl_c_pipes", "__opencl_c_subgroups",
                                     "__opencl_c_device_enqueue"};

cl_name_version Named(const char* name, cl_version version) {
  cl_name_version named = {};
  named.version = version;
  std::strncpy(named.name, name, sizeof(named.name) - 1);
  return named;
}

// PoCL's list with ours behind it.
template <size_t kCount>
cl_int GiveList(cl_device_id device, cl_device_info param, const char* const (&ours)[kCount],
                cl_version version, size_t room, void* out, size_t* bytes_out) {
  size_t bytes = 0;
  g_pocl.clGetDeviceInfo(device, param, 0, nullptr, &bytes);
  std::vector<cl_name_version> list(bytes / sizeof(cl_name_version));
  g_pocl.clGetDeviceInfo(device, param, bytes, list.data(), nullptr);
  for (const char* const name : ours) list.push_back(Named(name, version));
  return Give(list.data(), list.size() * sizeof(list[0]), room, out, bytes_out);
}

cl_int GiveExtensions(cl_device_id device, size_t room, void* out, size_t* bytes_out) {
  size_t bytes = 0;
  g_pocl.clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, 0, nullptr, &bytes);
  std::string text(bytes, '\0');
  g_pocl.clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, bytes, text.data(), nullptr);
  text.resize(std::strlen(text.c_str()));
  while (!text.empty() && text.back() == ' ') text.pop_back();
  for (const char* const name : kExtensions) text.append(" ").append(name);
  return GiveText(text, room, out, bytes_out);
}

template <size_t kBytes>
std::array<cl_uchar, kBytes> Counting(cl_uchar first) {
  std::array<cl_uchar, kBytes> bytes;
  std::iota(bytes.begin(), bytes.end(), first);
  return bytes;
}

// PoCL answers "none" to these. False for all that is PoCL's to say.
bool GiveOurs(cl_device_info param, size_t room, void* out, size_t* bytes_out, cl_int* status) {
  const auto give = [&](const auto& value) {
    *status = GiveValue(value, room, out, bytes_out);
    return true;
  };
  switch (param) {
    case CL_DEVICE_PIPE_SUPPORT:
      return give(cl_bool{CL_TRUE});
    case CL_DEVICE_MAX_PIPE_ARGS:
      return give(cl_uint{16});
    case CL_DEVICE_PIPE_MAX_ACTIVE_RESERVATIONS:
      return give(cl_uint{1});
    case CL_DEVICE_PIPE_MAX_PACKET_SIZE:
      return give(kMaxPacketBytes);
    case CL_DEVICE_IL_VERSION:
      *status = GiveText("SPIR-V_1.0", room, out, bytes_out);
      return true;
    case CL_DEVICE_ILS_WITH_VERSION:
      return give(Named("SPIR-V", CL_MAKE_VERSION(1, 0, 0)));
    case CL_DEVICE_IMAGE_PITCH_ALIGNMENT:
      return give(kPitchPixels);
    case CL_DEVICE_IMAGE_BASE_ADDRESS_ALIGNMENT:
      return give(kAddressPixels);
    case CL_DEVICE_MAX_NUM_SUB_GROUPS:
      return give(cl_uint{64});
    case CL_DEVICE_SUB_GROUP_INDEPENDENT_FORWARD_PROGRESS:
      return give(cl_bool{CL_TRUE});
    case CL_DEVICE_DEVICE_ENQUEUE_CAPABILITIES:
      return give(cl_device_device_enqueue_capabilities{CL_DEVICE_QUEUE_SUPPORTED |
                                                        CL_DEVICE_QUEUE_REPLACEABLE_DEFAULT});
    case CL_DEVICE_QUEUE_ON_DEVICE_PROPERTIES:
      return give(cl_command_queue_properties{CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE |
                                              CL_QUEUE_PROFILING_ENABLE});
    case CL_DEVICE_QUEUE_ON_DEVICE_PREFERRED_SIZE:
      return give(kPreferredQueueBytes);
    case CL_DEVICE_QUEUE_ON_DEVICE_MAX_SIZE:
      return give(kMaxQueueBytes);
    case CL_DEVICE_UUID_KHR:
      return give(Counting<CL_UUID_SIZE_KHR>(0x10));
    case CL_DRIVER_UUID_KHR:
      return give(Counting<CL_UUID_SIZE_KHR>(0x40));
    case CL_DEVICE_LUID_VALID_KHR:
      return give(cl_bool{CL_TRUE});
    case CL_DEVICE_LUID_KHR:
      return give(Counting<CL_LUID_SIZE_KHR>(0x70));
    case CL_DEVICE_NODE_MASK_KHR:
      return give(cl_uint{4});
    case CL_DEVICE_PCI_BUS_INFO_KHR:
      return give(cl_device_pci_bus_info_khr{0x12, 0x34, 0x1d, 0x5});
    case CL_DEVICE_MAX_ON_DEVICE_QUEUES:
      return give(cl_uint{4});
    case CL_DEVICE_MAX_ON_DEVICE_EVENTS:
      return give(cl_uint{1024});
    default:
      return false;
  }
}

cl_int CL_API_CALL GetDeviceInfo(cl_device_id device, cl_device_info param, size_t room, void* out,
                                 size_t* bytes_out) {
  if (device == nullptr) return CL_INVALID_DEVICE;
  cl_int status = CL_SUCCESS;
  if (GiveOurs(param, room, out, bytes_out, &status)) return status;
  switch (param) {
    case CL_DEVICE_EXTENSIONS:
      return GiveExtensions(device, room, out, bytes_out);
    case CL_DEVICE_EXTENSIONS_WITH_VERSION:
      return GiveList(device, param, kExtensions, CL_MAKE_VERSION(1, 0, 0), room, out, bytes_out);
    case CL_DEVICE_OPENCL_C_FEATURES:
      return GiveList(device, param, kFeatures, CL_MAKE_VERSION(3, 0, 0), room, out, bytes_out);
    default:
      return g_pocl.clGetDeviceInfo(device, param, room, out, bytes_out);
  }
}

cl_int CL_API_CALL GetPlatformInfo(cl_platform_id platform, cl_platform_info param, size_t room,
                                   void* out, size_t* bytes_out) {
  if (param == CL_PLATFORM_HOST_TIMER_RESOLUTION)
    return GiveValue(cl_ulong{1}, room, out, bytes_out);
  return g_pocl.clGetPlatformInfo(platform, param, room, out, bytes_out);
}

// PoCL's events are told by this clock.
cl_ulong Now() {
  timespec now = {};
  ::clock_gettime(CLOCK_MONOTONIC_RAW, &now);
  return static_cast<cl_ulong>(now.tv_sec) * 1'000'000'000 + static_cast<cl_ulong>(now.tv_nsec);
}

cl_int CL_API_CALL GetDeviceAndHostTimer(cl_device_id device, cl_ulong* device_time,
                                         cl_ulong* host_time) {
  if (device == nullptr) return CL_INVALID_DEVICE;
  if (device_time == nullptr || host_time == nullptr) return CL_INVALID_VALUE;
  *device_time = *host_time = Now();
  return CL_SUCCESS;
}

cl_int CL_API_CALL GetHostTimer(cl_device_id device, cl_ulong* host_time) {
  if (device == nullptr) return CL_INVALID_DEVICE;
  if (host_time == nullptr) return CL_INVALID_VALUE;
  *host_time = Now();
  return CL_SUCCESS;
}

// The table lies in memory that the dynamic linker has made read-only.
bool MakeWritable(cl_icd_dispatch* table) {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const uintptr_t first = reinterpret_cast<uintptr_t>(table) / page * page;
  const uintptr_t end = reinterpret_cast<uintptr_t>(table + 1);
  return ::mprotect(reinterpret_cast<void*>(first), end - first, PROT_READ | PROT_WRITE) == 0;
}

cl_int LoadPocl(cl_uint room, cl_platform_id* platforms, cl_uint* count) {
  void* const library = ::dlopen("libpocl.so.2", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return CL_PLATFORM_NOT_FOUND_KHR;
  using Find = void*(CL_API_CALL*)(const char*);
  const auto find = reinterpret_cast<Find>(::dlsym(library, "clGetExtensionFunctionAddress"));
  if (find == nullptr) return CL_PLATFORM_NOT_FOUND_KHR;
  const auto get = reinterpret_cast<clIcdGetPlatformIDsKHR_fn>(find("clIcdGetPlatformIDsKHR"));
  static cl_platform_id platform = nullptr;
  static const bool replaced = [get] {
    if (get == nullptr || get(1, &platform, nullptr) != CL_SUCCESS) return false;
    // The one rule of a driver's objects: the table's address comes first.
    cl_icd_dispatch* const table = *reinterpret_cast<cl_icd_dispatch**>(platform);
    if (!MakeWritable(table)) return false;
    g_pocl = *table;
    ReplaceInfoFunctions(table);
    ReplaceImageFunctions(table);
    ReplaceObjectFunctions(table);
    ReplaceProgramFunctions(table);
    ReplaceKernelFunctions(table);
    ReplaceWhatLosesDevices(table);
    return true;
  }();
  if (!replaced) return CL_PLATFORM_NOT_FOUND_KHR;
  if (platforms != nullptr && room > 0) platforms[0] = platform;
  if (count != nullptr) *count = 1;
  return CL_SUCCESS;
}

}  // namespace

const cl_icd_dispatch& Pocl() { return g_pocl; }

void ReplaceInfoFunctions(cl_icd_dispatch* table) {
  table->clGetPlatformInfo = &GetPlatformInfo;
  table->clGetDeviceInfo = &GetDeviceInfo;
  table->clGetDeviceAndHostTimer = &GetDeviceAndHostTimer;
  table->clGetHostTimer = &GetHostTimer;
}

}  // namespace sluice::complete_driver

// For a loader's look-up.
extern "C" {

__attribute__((visibility("default"))) cl_int CL_API_CALL
clIcdGetPlatformIDsKHR(cl_uint room, cl_platform_id* platforms, cl_uint* count) {
  return sluice::complete_driver::LoadPocl(room, platforms, count);
}

__attribute__((visibility("default"))) void* CL_API_CALL
clGetExtensionFunctionAddress(const char* name) {
  if (std::strcmp(name, "clIcdGetPlatformIDsKHR") == 0)
    return reinterpret_cast<void*>(&clIcdGetPlatformIDsKHR);
  const auto pocls = sluice::complete_driver::Pocl().clGetExtensionFunctionAddress;
  return pocls == nullptr ? nullptr : pocls(name);
}

__attribute__((visibility("default"))) cl_int CL_API_CALL clGetPlatformInfo(cl_platform_id platform,
                                                                            cl_platform_info param,
                                                                            size_t room, void* out,
                                                                            size_t* bytes_out) {
  return (*reinterpret_cast<cl_icd_dispatch**>(platform))
      ->clGetPlatformInfo(platform, param, room, out, bytes_out);
}

}  // extern "C"
