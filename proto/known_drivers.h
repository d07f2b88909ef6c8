// SPDX-License-Identifier: Apache-2.0
//
// Which driver a device has, where client or worker must know a driver's own ways. Both ask here.
#pragma once

#include <charconv>
#include <cstdint>
#include <string_view>

namespace sluice {

// `device_version`: CL_DEVICE_VERSION, "OpenCL 3.0 PoCL HSTR: ...".
inline bool IsPocl(std::string_view device_version) {
  return device_version.find(" PoCL") != std::string_view::npos;
}

// The first number of CL_DRIVER_VERSION ("3.1+debian", "6.0"), which of PoCL is its own; 0 if there
// is none.
inline int DriverMajor(std::string_view driver_version) {
  int major = 0;
  std::from_chars(driver_version.data(), driver_version.data() + driver_version.size(), major);
  return major;
}

// True if shared virtual memory is to the driver's commands only what its own clSVMAlloc has given.
// PoCL 6.0 crashes when it fills other memory, which its kernels may use all the same, and a map or
// unmap there gives no event. PoCL 3.1 takes any memory.
inline bool KnowsOwnSvmOnly(std::string_view device_version, std::string_view driver_version) {
  return IsPocl(device_version) && DriverMajor(driver_version) > 3;
}

// `vendor_id`: CL_DEVICE_VENDOR_ID, by the PCI SIG.
inline bool IsNvidia(uint32_t vendor_id) { return vendor_id == 0x10de; }

}  // namespace sluice
