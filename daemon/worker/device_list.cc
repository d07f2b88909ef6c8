// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/device_list.h"

#include <CL/cl_ext.h>

#include <array>
#include <set>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "daemon/worker/driver.h"
#include "daemon/worker/worker_files.h"
#include "daemon/worker/worker_process.h"

namespace sluice::worker {
namespace {

template <typename Get>
std::string TextOf(Get&& get) {
  size_t size = 0;
  if (get(0, nullptr, &size) != CL_SUCCESS || size == 0) return {};
  std::string text(size, '\0');
  if (get(size, text.data(), nullptr) != CL_SUCCESS) return {};
  text.resize(text.find('\0') == std::string::npos ? size : text.find('\0'));
  return text;
}

std::string TextOfDevice(cl_device_id device, cl_device_info param) {
  return TextOf([=](size_t size, void* value, size_t* size_ret) {
    return cl().clGetDeviceInfo(device, param, size, value, size_ret);
  });
}

bool Allowed(const std::string& device_name, const std::string& allow_list) {
  if (allow_list.empty()) return true;
  for (const std::string& pattern :
       std::vector<std::string>(absl::StrSplit(allow_list, ',', absl::SkipEmpty()))) {
    if (MatchesWildcard(pattern, device_name)) return true;
  }
  return false;
}

template <typename T>
void AppendInfo(cl_device_id device, cl_device_info param, std::string* out) {
  T value{};
  if (cl().clGetDeviceInfo(device, param, sizeof(value), &value, nullptr) != CL_SUCCESS) return;
  out->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// Devices that say the same of themselves are told apart by their order.
uint64_t KeyOf(const std::string& platform, cl_device_id device, std::set<uint64_t>* taken) {
  std::string text = absl::StrCat(platform, "\n", DeviceName(device), "\n");
  AppendInfo<cl_uint>(device, CL_DEVICE_VENDOR_ID, &text);
  AppendInfo<std::array<cl_uchar, CL_UUID_SIZE_KHR>>(device, CL_DEVICE_UUID_KHR, &text);
  AppendInfo<cl_device_pci_bus_info_khr>(device, CL_DEVICE_PCI_BUS_INFO_KHR, &text);
  uint64_t key = XXH3_64bits(text.data(), text.size());
  while (key == 0 || !taken->insert(key).second) ++key;
  return key;
}

}  // namespace

std::string DeviceName(cl_device_id device) { return TextOfDevice(device, CL_DEVICE_NAME); }

absl::StatusOr<std::vector<RealPlatform>> ListRealDevices(const std::string& allow_list) {
  cl_uint count = 0;
  if (const cl_int status = cl().clGetPlatformIDs(0, nullptr, &count); status != CL_SUCCESS) {
    return absl::NotFoundError(absl::StrCat("clGetPlatformIDs: ", status));
  }
  std::vector<cl_platform_id> handles(count);
  cl().clGetPlatformIDs(count, handles.data(), nullptr);
  std::vector<RealPlatform> platforms;
  uint64_t next_id = 1;
  std::set<uint64_t> keys;
  for (const cl_platform_id handle : handles) {
    RealPlatform platform;
    platform.handle = handle;
    platform.name = TextOf([&](size_t size, void* value, size_t* size_ret) {
      return cl().clGetPlatformInfo(handle, CL_PLATFORM_NAME, size, value, size_ret);
    });
    if (IsOwnPlatform(platform.name)) continue;
    cl_uint devices = 0;
    if (cl().clGetDeviceIDs(handle, CL_DEVICE_TYPE_ALL, 0, nullptr, &devices) != CL_SUCCESS)
      continue;
    std::vector<cl_device_id> ids(devices);
    cl().clGetDeviceIDs(handle, CL_DEVICE_TYPE_ALL, devices, ids.data(), nullptr);
    for (const cl_device_id id : ids) {
      const uint64_t number = next_id++;
      const uint64_t key = KeyOf(platform.name, id, &keys);
      if (!Allowed(DeviceName(id), allow_list)) continue;
      cl_device_type type = 0;
      cl().clGetDeviceInfo(id, CL_DEVICE_TYPE, sizeof(type), &type, nullptr);
      cl_uint vendor = 0;
      cl().clGetDeviceInfo(id, CL_DEVICE_VENDOR_ID, sizeof(vendor), &vendor, nullptr);
      const std::string version = TextOfDevice(id, CL_DEVICE_VERSION);
      const std::string driver = TextOfDevice(id, CL_DRIVER_VERSION);
      platform.devices.push_back(
          {number, key, id, (type & CL_DEVICE_TYPE_CPU) != 0, QuirksOf({vendor, version, driver})});
    }
    if (!platform.devices.empty()) platforms.push_back(std::move(platform));
  }
  if (const std::string unusable = next_id == 1 ? UnusableFolder() : ""; !unusable.empty())
    return absl::NotFoundError(absl::StrCat("no OpenCL device: ", unusable));
  return platforms;
}

}  // namespace sluice::worker
