// SPDX-License-Identifier: Apache-2.0
#include "client_icd/sharing/core/native_device.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "client_icd/objects/endpoint.h"

namespace sluice::client::sharing {
namespace {

bool IsOn(const Device& device, const std::optional<AdapterLuid>& adapter) {
  return adapter && !device.platform()->endpoint().is_remote() && LuidOf(device.info()) == adapter;
}

}  // namespace

std::optional<AdapterLuid> LuidOf(const InfoTable& info) {
  const std::string* bytes = info.Find(CL_DEVICE_LUID_KHR);
  AdapterLuid luid;
  if (bytes == nullptr || bytes->size() != luid.size() ||
      info.Scalar<cl_bool>(CL_DEVICE_LUID_VALID_KHR, CL_FALSE) != CL_TRUE) {
    return std::nullopt;
  }
  std::memcpy(luid.data(), bytes->data(), luid.size());
  return luid;
}

bool IsOnAdapter(std::span<Device* const> devices, const std::optional<AdapterLuid>& adapter) {
  return devices.size() == 1 && IsOn(*devices[0], adapter);
}

cl_int CheckDeviceList(cl_uint num_entries, const cl_device_id* devices,
                       const cl_uint* num_devices) {
  if (num_entries == 0 && devices != nullptr) return CL_INVALID_VALUE;
  return num_devices == nullptr && devices == nullptr ? CL_INVALID_VALUE : CL_SUCCESS;
}

cl_int GiveDevices(const Platform& platform, const std::optional<AdapterLuid>& adapter, bool all,
                   cl_uint num_entries, cl_device_id* devices, cl_uint* num_devices) {
  std::vector<cl_device_id> found;
  for (Device* device : platform.devices()) {
    if (all || IsOn(*device, adapter)) found.push_back(device->handle());
  }
  if (num_devices != nullptr) *num_devices = static_cast<cl_uint>(found.size());
  if (found.empty()) return CL_DEVICE_NOT_FOUND;
  if (devices != nullptr) {
    std::copy_n(found.begin(), std::min<size_t>(num_entries, found.size()), devices);
  }
  return CL_SUCCESS;
}

}  // namespace sluice::client::sharing
