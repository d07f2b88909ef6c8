// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/driver.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "broker/os/dynamic_library.h"
#include "daemon/worker/worker_files.h"
#include "daemon/worker/worker_process.h"

namespace sluice::worker {
namespace {

Driver g_driver;

}  // namespace

const Driver& Driver::Get() { return g_driver; }

void Driver::InstallForTesting(const Driver& driver) { g_driver = driver; }

absl::Status Driver::Load() {
  // The broker shows the loader a folder without Sluice's own driver (broker/vendor_folder.h).
  // Should that be loaded all the same (OCL_ICD_FILENAMES, a layer), this makes it offer no
  // platform.
  SetVariable("SLUICE_WORKER", "1");
  absl::StatusOr<os::DynamicLibrary> library = os::DynamicLibrary::Open(kOpenClLoader);
  if (!library.ok()) {
    return absl::NotFoundError(absl::StrCat("no OpenCL loader: ", library.status().message(), " (",
                                            kOpenClLoaderAdvice, ")"));
  }
  library->KeepForever();
#define DRIVER_FUNCTION(name) \
  g_driver.name = reinterpret_cast<decltype(g_driver.name)>(library->Find(#name));
#include "daemon/worker/driver_functions.inc"
  if (g_driver.clGetPlatformIDs == nullptr) {
    return absl::NotFoundError(absl::StrCat(kOpenClLoader, " has no clGetPlatformIDs"));
  }
  cl_uint count = 0;
  const cl_int status = g_driver.clGetPlatformIDs(0, nullptr, &count);
  if (status != CL_SUCCESS || count == 0) {
    const std::string unusable = UnusableFolder();
    return absl::NotFoundError(unusable.empty() ? "no OpenCL platform on this host (install its "
                                                  "device's driver, or on Linux one for the "
                                                  "processor, such as pocl-opencl-icd)"
                                                : absl::StrCat("no OpenCL platform: ", unusable));
  }
  return absl::OkStatus();
}

bool IsOwnPlatform(const std::string& platform_name) {
  return absl::StartsWith(platform_name, "Sluice (");
}

}  // namespace sluice::worker
