// SPDX-License-Identifier: Apache-2.0
#include "daemon/driver.h"

#include <dlfcn.h>

#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace sluice {
namespace {

Driver g_driver;

}  // namespace

const Driver& Driver::Get() { return g_driver; }

void Driver::InstallForTesting(const Driver& driver) { g_driver = driver; }

absl::Status Driver::Load() {
  // The broker shows the loader a folder without Sluice's own driver (broker/vendor_folder.h).
  // Should that be loaded all the same (OCL_ICD_FILENAMES, a layer), this makes it offer no
  // platform.
  setenv("SLUICE_WORKER", "1", 1);
  void* library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("no OpenCL loader: ", dlerror(), " (install ocl-icd-libopencl1)"));
  }
#define DRIVER_FUNCTION(name) \
  g_driver.name = reinterpret_cast<decltype(g_driver.name)>(dlsym(library, #name));
#include "daemon/driver_functions.inc"
  if (g_driver.clGetPlatformIDs == nullptr) {
    return absl::NotFoundError("libOpenCL.so.1 has no clGetPlatformIDs");
  }
  cl_uint count = 0;
  const cl_int status = g_driver.clGetPlatformIDs(0, nullptr, &count);
  if (status != CL_SUCCESS || count == 0) {
    return absl::NotFoundError(
        "no OpenCL platform on this host (install a driver, for instance pocl-opencl-icd)");
  }
  return absl::OkStatus();
}

bool IsOwnPlatform(const std::string& platform_name) {
  return absl::StartsWith(platform_name, "Sluice (");
}

}  // namespace sluice
