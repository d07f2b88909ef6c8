// SPDX-License-Identifier: Apache-2.0
//
// Which OpenCL platform this run looks at. One binary is run several times (the native driver,
// Sluice over the ring, Sluice over the network) and the environment says which run it is:
//   SLUICE_TEST_PLATFORM   substring of CL_PLATFORM_NAME (or --platform=SUBSTRING); default: the
//   first platform SLUICE_TEST_KIND       native | ring | network; default: ring when the name
//   starts with "Sluice (", else native SLUICE_TEST_RECORD     a file that gets one line per
//   checked code, for comparing two runs SLUICE_TEST_TIMEOUT_S  life of one test, default 60
// Owner: main.cc fills it once before any test. Thread: written before the tests start, read by
// all. Trust: none needed.
#pragma once

#include <CL/cl.h>
#include <CL/cl_ext.h>

#include <cstddef>
#include <string>
#include <vector>

namespace sluice::conformance {

enum class Kind { kNative, kRing, kNetwork };

struct Harness {
  cl_platform_id platform = nullptr;
  cl_device_id device = nullptr;
  std::string platform_name;
  Kind kind = Kind::kNative;
  int timeout_s = 60;
  std::string record_path;
  std::string driver_version;

  bool IsSluice() const { return kind != Kind::kNative; }
};

// Thread-safe after SelectPlatform.
const Harness& TheHarness();

// Finds the platform and its default device. Returns an empty string, or what is missing and what
// to do.
std::string SelectPlatform(const std::string& substring);

const char* KindName(Kind kind);

std::string PlatformString(cl_platform_id platform, cl_platform_info param);
std::string DeviceString(cl_device_id device, cl_device_info param);

template <typename T>
T DeviceValue(cl_device_id device, cl_device_info param) {
  T value{};
  clGetDeviceInfo(device, param, sizeof(value), &value, nullptr);
  return value;
}

template <typename T>
std::vector<T> DeviceArray(cl_device_id device, cl_device_info param) {
  size_t bytes = 0;
  if (clGetDeviceInfo(device, param, 0, nullptr, &bytes) != CL_SUCCESS) return {};
  std::vector<T> values(bytes / sizeof(T));
  if (!values.empty()) clGetDeviceInfo(device, param, bytes, values.data(), nullptr);
  return values;
}

bool HasDeviceExtension(cl_device_id device, const std::string& name);
bool HasPlatformExtension(cl_platform_id platform, const std::string& name);

}  // namespace sluice::conformance
