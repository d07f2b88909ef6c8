// SPDX-License-Identifier: Apache-2.0
#include "platform_linux/helpers/driver_files.h"

#include <dlfcn.h>
#include <glob.h>
#include <sys/auxv.h>

#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace sluice::os {
namespace {

namespace fs = std::filesystem;

// Programs and libraries, and the system's files that they read. Of /proc only this process's
// folder: `self` is resolved when the rule is made.
constexpr const char* kLibraries[] = {"/usr",
                                      "/lib",
                                      "/lib32",
                                      "/lib64",
                                      "/bin",
                                      "/sbin",
                                      "/opt",
                                      "/nix/store",
                                      "/gnu/store",
                                      "/etc/ld.so.cache",
                                      "/etc/ld.so.conf",
                                      "/etc/ld.so.conf.d",
                                      "/etc/ld.so.preload",
                                      "/etc/localtime",
                                      "/etc/alternatives",
                                      "/proc/self",
                                      "/proc/cpuinfo",
                                      "/proc/filesystems",
                                      "/proc/loadavg",
                                      "/proc/meminfo",
                                      "/proc/stat",
                                      "/proc/sys/vm",
                                      "/proc/uptime",
                                      "/proc/version",
                                      "/sys/devices/system"};

// The configuration of drivers, and the files that they read about the machine.
constexpr const char* kDrivers[] = {"/run/opengl-driver", "/etc/OpenCL",  "/etc/nvidia",
                                    "/etc/vulkan",        "/etc/egl",     "/etc/glvnd",
                                    "/etc/drirc",         "/sys",         "/proc/bus",
                                    "/proc/devices",      "/proc/driver", "/proc/modules"};

constexpr const char* kAnybodysDevices[] = {"/dev/null", "/dev/zero", "/dev/full", "/dev/random",
                                            "/dev/urandom"};
constexpr const char* kDriversDevices[] = {"/dev/dri",     "/dev/nvidia*", "/dev/kfd",
                                           "/dev/accel",   "/dev/mali*",   "/dev/udmabuf",
                                           "/dev/dma_heap"};

constexpr const char* kCompilersPrograms[] = {"ld", "ld.*", "*-ld", "*-ld.*", "lld", "llvm-spirv*"};

void AddMatches(const char* pattern, std::vector<std::string>* out) {
  glob_t found = {};
  if (::glob(pattern, 0, nullptr, &found) == 0) {
    for (size_t i = 0; i < found.gl_pathc; ++i) out->push_back(found.gl_pathv[i]);
  }
  ::globfree(&found);
}

// Vulkan's driver manifests, which a variable names to its loader. A driver's library that lies
// neither beside its manifest nor with other libraries must be allowed by name.
void AddVulkanDrivers(const char* variable, std::vector<std::string>* out) {
  for (const absl::string_view file : absl::StrSplit(Variable(variable), ':', absl::SkipEmpty())) {
    if (absl::StartsWith(file, "/")) out->push_back(FolderOf(std::string(file)));
  }
}

}  // namespace

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string FolderOf(const std::string& path) { return fs::path(path).parent_path().string(); }

FileAccess LibraryFiles() {
  FileAccess access;
  access.readable.assign(std::begin(kLibraries), std::end(kLibraries));
  for (const absl::string_view folder :
       absl::StrSplit(Variable("LD_LIBRARY_PATH"), ':', absl::SkipEmpty())) {
    access.readable.emplace_back(folder);
  }
  std::error_code error;
  // For the sanitizers' symbols, in a build tree.
  access.readable.push_back(FolderOf(fs::read_symlink("/proc/self/exe", error).string()));
  access.devices.assign(std::begin(kAnybodysDevices), std::end(kAnybodysDevices));
  return access;
}

std::vector<std::string> CompilersPrograms() {
  std::vector<std::string> programs;
  std::vector<std::string> folders = {"/usr/bin", "/usr/local/bin", "/bin", "/usr/lib/llvm*/bin"};
  for (const absl::string_view folder : absl::StrSplit(Variable("PATH"), ':', absl::SkipEmpty())) {
    if (absl::StartsWith(folder, "/")) folders.emplace_back(folder);
  }
  for (const std::string& folder : folders) {
    for (const char* const name : kCompilersPrograms)
      AddMatches(absl::StrCat(folder, "/", name).c_str(), &programs);
  }
  // The dynamic loader that has started this process, and starts the linkers, too.
  Dl_info loader = {};
  if (::dladdr(reinterpret_cast<void*>(::getauxval(AT_BASE)), &loader) != 0 &&
      loader.dli_fname != nullptr) {
    programs.emplace_back(loader.dli_fname);
  }
  return programs;
}

FileAccess DriverFiles() {
  FileAccess access = LibraryFiles();
  access.readable.insert(access.readable.end(), std::begin(kDrivers), std::end(kDrivers));
  AddVulkanDrivers("VK_DRIVER_FILES", &access.readable);
  AddVulkanDrivers("VK_ICD_FILENAMES", &access.readable);
  for (const char* const pattern : kDriversDevices) AddMatches(pattern, &access.devices);
  return access;
}

}  // namespace sluice::os
