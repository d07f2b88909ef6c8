// SPDX-License-Identifier: Apache-2.0
// The platforms and devices of this host that policy allows, in the order of their drivers. Between
// the probe and a worker that may change with the machine: a device is known again by its key.
// Thread-safe: no state.
#pragma once

#include <CL/cl.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/worker/driver_quirks.h"

namespace sluice::worker {

std::string DeviceName(cl_device_id device);

struct RealDevice {
  uint64_t id = 0;   // From 1, over all platforms.
  uint64_t key = 0;  // Of what the device says of itself: the same as long as the machine has it.
  cl_device_id handle = nullptr;
  bool is_cpu = false;
  DriverQuirks quirks;
};

struct RealPlatform {
  cl_platform_id handle = nullptr;
  std::string name;
  std::vector<RealDevice> devices;
};

// `allow_list`: shell patterns of device names, comma separated; empty allows all. Ids are given
// before the list is applied, so that a change of policy moves no id. Platforms without an allowed
// device are left out.
absl::StatusOr<std::vector<RealPlatform>> ListRealDevices(const std::string& allow_list);

}  // namespace sluice::worker
