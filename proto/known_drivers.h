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

// True if the driver frees a command that fails by one of its dependencies, and touches it again
// after that (daemon/worker/queues/kept_events.h): PoCL 3.1. It aborts in the first rounds of
// what 6.0 and 7.1 stand thousands of.
inline bool FreesWhatFails(std::string_view device_version, std::string_view driver_version) {
  return IsPocl(device_version) && DriverMajor(driver_version) < 6;
}

// True if the driver crashes when it copies rectangles, or from and to images, and a buffer is a
// sub-buffer (daemon/worker/memory/whole_buffer.h): PoCL 3.1 and 6.0. 7.1 copies them right.
inline bool CrashesOnParts(std::string_view device_version, std::string_view driver_version) {
  return IsPocl(device_version) && DriverMajor(driver_version) < 7;
}

// True if shared virtual memory is to the driver's commands only what its own clSVMAlloc has given.
// PoCL 6.0 crashes when it fills other memory, which its kernels may use all the same, and a map or
// unmap there gives no event. PoCL 3.1 takes any memory.
inline bool KnowsOwnSvmOnly(std::string_view device_version, std::string_view driver_version) {
  return IsPocl(device_version) && DriverMajor(driver_version) > 3;
}

// `vendor_id`: CL_DEVICE_VENDOR_ID, by the PCI SIG.
inline bool IsNvidia(uint32_t vendor_id) { return vendor_id == 0x10de; }

// What a device's driver does in a way of its own that the worker must know.
struct DriverWays {
  bool is_nvidia =
      false;  // Events are polled (daemon/worker/queues/completions.h), fills of volumes wait.
  bool is_pocl =
      false;  // Any: its race when a user event fails (daemon/worker/guards.h), and its codes.
  bool frees_what_fails = false;
  bool crashes_on_parts = false;
  bool knows_own_svm_only = false;  // Fills, maps and unmaps there are ours (handlers/svm.cc).
};

inline DriverWays WaysOf(uint32_t vendor_id, std::string_view device_version,
                         std::string_view driver_version) {
  return {IsNvidia(vendor_id), IsPocl(device_version),
          FreesWhatFails(device_version, driver_version),
          CrashesOnParts(device_version, driver_version),
          KnowsOwnSvmOnly(device_version, driver_version)};
}

}  // namespace sluice
