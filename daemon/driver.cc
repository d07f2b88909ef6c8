// SPDX-License-Identifier: Apache-2.0
#include "daemon/driver.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

Driver g_driver;

bool NamesOwnIcd(const fs::path& icd_file) {
  std::ifstream in(icd_file);
  std::string line;
  std::getline(in, line);
  return absl::StrContains(line, "libsluice_icd");
}

// Both loaders read the folder that OCL_ICD_VENDORS names. Gives them one with links to every
// vendor's file but ours, for as long as they look at it. Returns the folder to remove afterwards,
// or nothing if there was nothing to hide.
fs::path HideOwnIcd() {
  const char* configured = std::getenv("OCL_ICD_VENDORS");
  const fs::path vendors =
      configured != nullptr && *configured != '\0' ? configured : "/etc/OpenCL/vendors";
  std::error_code error;
  if (!fs::is_directory(vendors, error)) return {};
  std::string name = (fs::temp_directory_path(error) / "sluice-vendors-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) return {};
  for (const auto& entry : fs::directory_iterator(vendors, error)) {
    if (entry.path().extension() != ".icd" || NamesOwnIcd(entry.path())) continue;
    fs::create_symlink(fs::absolute(entry.path()), fs::path(name) / entry.path().filename(), error);
  }
  setenv("OCL_ICD_VENDORS", name.c_str(), 1);
  return name;
}

}  // namespace

const Driver& Driver::Get() { return g_driver; }

void Driver::InstallForTesting(const Driver& driver) { g_driver = driver; }

absl::Status Driver::Load() {
  // Should our ICD be loaded all the same (OCL_ICD_FILENAMES, a layer), this makes it offer no
  // platform.
  setenv("SLUICE_WORKER", "1", 1);
  const fs::path hidden = HideOwnIcd();
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
  // The first call makes the loader read its folder.
  cl_uint count = 0;
  const cl_int status = g_driver.clGetPlatformIDs(0, nullptr, &count);
  std::error_code error;
  if (!hidden.empty()) fs::remove_all(hidden, error);
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
