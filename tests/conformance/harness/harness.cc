// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/harness/harness.h"

#include <cstdlib>

namespace sluice::conformance {
namespace {

Harness& MutableHarness() {
  static Harness harness;
  return harness;
}

bool HasWord(const std::string& list, const std::string& word) {
  return (" " + list + " ").find(" " + word + " ") != std::string::npos;
}

std::string ReadKind(const std::string& platform_name, Kind* kind) {
  const char* text = std::getenv("SLUICE_TEST_KIND");
  const std::string wanted = text == nullptr ? "" : text;
  if (wanted.empty()) {
    *kind = platform_name.rfind("Sluice (", 0) == 0 ? Kind::kRing : Kind::kNative;
  } else if (wanted == "native") {
    *kind = Kind::kNative;
  } else if (wanted == "ring") {
    *kind = Kind::kRing;
  } else if (wanted == "network") {
    *kind = Kind::kNetwork;
  } else {
    return "SLUICE_TEST_KIND is \"" + wanted + "\"; allowed are native, ring, network";
  }
  return "";
}

}  // namespace

const Harness& TheHarness() { return MutableHarness(); }

const char* KindName(Kind kind) {
  switch (kind) {
    case Kind::kNative:
      return "native";
    case Kind::kRing:
      return "ring";
    case Kind::kNetwork:
      return "network";
  }
  return "unknown";
}

std::string PlatformString(cl_platform_id platform, cl_platform_info param) {
  size_t bytes = 0;
  if (clGetPlatformInfo(platform, param, 0, nullptr, &bytes) != CL_SUCCESS || bytes == 0) return "";
  std::string text(bytes, '\0');
  if (clGetPlatformInfo(platform, param, bytes, text.data(), nullptr) != CL_SUCCESS) return "";
  text.resize(bytes - 1);
  return text;
}

std::string DeviceString(cl_device_id device, cl_device_info param) {
  size_t bytes = 0;
  if (clGetDeviceInfo(device, param, 0, nullptr, &bytes) != CL_SUCCESS || bytes == 0) return "";
  std::string text(bytes, '\0');
  if (clGetDeviceInfo(device, param, bytes, text.data(), nullptr) != CL_SUCCESS) return "";
  text.resize(bytes - 1);
  return text;
}

bool HasDeviceExtension(cl_device_id device, const std::string& name) {
  return HasWord(DeviceString(device, CL_DEVICE_EXTENSIONS), name);
}

bool HasPlatformExtension(cl_platform_id platform, const std::string& name) {
  return HasWord(PlatformString(platform, CL_PLATFORM_EXTENSIONS), name);
}

std::string SelectPlatform(const std::string& substring) {
  cl_uint count = 0;
  if (clGetPlatformIDs(0, nullptr, &count) != CL_SUCCESS || count == 0) {
    return "the OpenCL loader shows no platform; check OCL_ICD_VENDORS and SLUICE_ENDPOINT";
  }
  std::vector<cl_platform_id> platforms(count);
  clGetPlatformIDs(count, platforms.data(), nullptr);
  Harness& harness = MutableHarness();
  std::string seen;
  for (cl_platform_id platform : platforms) {
    const std::string name = PlatformString(platform, CL_PLATFORM_NAME);
    seen += " \"" + name + "\"";
    if (harness.platform != nullptr || name.find(substring) == std::string::npos) continue;
    harness.platform = platform;
    harness.platform_name = name;
  }
  if (harness.platform == nullptr) {
    return "no platform's name contains \"" + substring + "\"; the loader shows:" + seen;
  }
  if (clGetDeviceIDs(harness.platform, CL_DEVICE_TYPE_ALL, 1, &harness.device, nullptr) !=
      CL_SUCCESS) {
    return "platform \"" + harness.platform_name + "\" has no device";
  }
  harness.driver_version = DeviceString(harness.device, CL_DRIVER_VERSION);
  if (const char* seconds = std::getenv("SLUICE_TEST_TIMEOUT_S"))
    harness.timeout_s = std::atoi(seconds);
  if (harness.timeout_s <= 0)
    return "SLUICE_TEST_TIMEOUT_S must be a whole number of seconds above 0";
  if (const char* path = std::getenv("SLUICE_TEST_RECORD")) harness.record_path = path;
  return ReadKind(harness.platform_name, &harness.kind);
}

}  // namespace sluice::conformance
