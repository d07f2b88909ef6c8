// SPDX-License-Identifier: Apache-2.0
// Which OpenCL devices go with a graphics adapter of Windows: those of the same LUID. Thread-safe:
// no state.
#pragma once

#include <CL/cl.h>

#include <array>
#include <optional>
#include <span>

#include "client_icd/objects/device.h"
#include "client_icd/objects/platform.h"

namespace sluice::client::sharing {

// A locally unique identifier, of this machine since it was started; bytes as CL_DEVICE_LUID_KHR
// gives them.
using AdapterLuid = std::array<uint8_t, CL_LUID_SIZE_KHR>;

// The device's own, if it says one (cl_khr_device_uuid).
std::optional<AdapterLuid> LuidOf(const InfoTable& info);

// True if a context's device, if it is one alone, is on that adapter. A LUID names all nodes of
// linked ones, which Direct3D 9 to 11 do not tell apart, and nothing of another machine's.
bool IsOnAdapter(std::span<Device* const> devices, const std::optional<AdapterLuid>& adapter);

// The arguments by which devices are handed out: CL_INVALID_VALUE if num_entries is equal to zero
// and devices is not NULL, or if both num_devices and devices are NULL.
cl_int CheckDeviceList(cl_uint num_entries, const cl_device_id* devices,
                       const cl_uint* num_devices);

// The answer of the functions that look for a graphics object's devices. All: every device of the
// platform, since every device shares by staging. Else the preferred: those on the adapter.
// CL_DEVICE_NOT_FOUND if there are none. `adapter` is empty if the object has no LUID.
cl_int GiveDevices(const Platform& platform, const std::optional<AdapterLuid>& adapter, bool all,
                   cl_uint num_entries, cl_device_id* devices, cl_uint* num_devices);

}  // namespace sluice::client::sharing
