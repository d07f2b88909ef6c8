// SPDX-License-Identifier: Apache-2.0
#include "broker/os/worker_files.h"

#include <glob.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "broker/os/file_access.h"
#include "broker/os/this_process.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxIcdBytes = 64 << 10;

// Where programs and libraries are, and the configuration of those that drivers use.
constexpr const char* kReadable[] = {
    "/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/opt", "/nix/store", "/gnu/store",
    "/run/opengl-driver", "/etc/OpenCL", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d",
    "/etc/ld.so.preload", "/etc/alternatives", "/etc/localtime", "/etc/nvidia", "/etc/vulkan",
    "/etc/egl", "/etc/glvnd", "/etc/drirc",
    // What drivers ask about the machine. Of processes only this one: `self` is resolved below.
    "/sys", "/proc/self", "/proc/bus", "/proc/cpuinfo", "/proc/devices", "/proc/driver",
    "/proc/filesystems", "/proc/loadavg", "/proc/meminfo", "/proc/modules", "/proc/stat",
    "/proc/sys/vm", "/proc/uptime", "/proc/version"};

constexpr const char* kDevices[] = {"/dev/null",    "/dev/zero",  "/dev/full",    "/dev/random",
                                    "/dev/urandom", "/dev/dri",   "/dev/nvidia*", "/dev/kfd",
                                    "/dev/accel",   "/dev/mali*", "/dev/udmabuf", "/dev/dma_heap"};

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

void AddMatches(const char* pattern, std::vector<std::string>* out) {
  glob_t found = {};
  if (::glob(pattern, 0, nullptr, &found) == 0) {
    for (size_t i = 0; i < found.gl_pathc; ++i) out->push_back(found.gl_pathv[i]);
  }
  ::globfree(&found);
}

std::string FolderOf(const std::string& path) { return fs::path(path).parent_path().string(); }

// A driver's library need not lie where libraries do: its .icd file names it.
void AddDriver(const fs::path& icd_file, std::vector<std::string>* out) {
  std::error_code error;
  const fs::path target = fs::canonical(icd_file, error);  // The broker's folder has links.
  if (!error) out->push_back(target.string());
  std::string content;
  ReadFileOfThisHost(icd_file, kMaxIcdBytes, &content);
  const std::string library(absl::StripAsciiWhitespace(content.substr(0, content.find('\n'))));
  if (absl::StartsWith(library, "/")) out->push_back(FolderOf(library));
}

void AddDrivers(std::vector<std::string>* out) {
  std::string vendors = Variable("OCL_ICD_VENDORS");
  if (vendors.empty()) vendors = "/etc/OpenCL/vendors";
  out->push_back(vendors);
  std::error_code error;
  if (!fs::is_directory(vendors, error)) return AddDriver(vendors, out);
  for (const fs::directory_entry& entry : fs::directory_iterator(vendors, error))
    AddDriver(entry.path(), out);
}

// Folders that a driver would make itself cannot be allowed before they are there.
void AddOwn(const std::string& path, std::vector<std::string>* out) {
  if (!absl::StartsWith(path, "/")) return;
  std::error_code error;
  fs::create_directories(path, error);
  out->push_back(path);
}

// "Permission denied at /home/x", if this user cannot have `path` as asked; "" if it can. A folder
// to write in may be missing where it can be made, one to read in anywhere.
std::string ObstacleOn(const std::string& path, int wanted) {
  std::string above = "/";
  for (size_t end = 0; end != path.npos;) {
    end = path.find('/', end + 1);
    const std::string here = path.substr(0, end);
    // With the slash, what is no folder is refused as that.
    const bool is_way = end != path.npos;
    if (::access(is_way ? (here + "/").c_str() : here.c_str(), is_way ? X_OK : wanted) == 0) {
      above = here;
      continue;
    }
    if (errno != ENOENT) return absl::StrCat(std::strerror(errno), " at ", here);
    if ((wanted & W_OK) == 0 || ::access(above.c_str(), W_OK | X_OK) == 0) return "";
    return absl::StrCat(std::strerror(errno), " at ", above);
  }
  return "";
}

// What this user cannot do below the folder that the variable names, if it names one.
std::string Unusable(const char* what, const char* variable, const char* below, int wanted,
                     const char* advice) {
  const std::string folder = Variable(variable);
  if (!absl::StartsWith(folder, "/")) return "";
  const std::string obstacle = ObstacleOn(folder + below, wanted);
  if (obstacle.empty()) return "";
  return absl::StrCat("user ", ::geteuid(), " cannot ", what, ": ", obstacle, "; ", advice,
                      "give access there (", variable, "=", folder, ")");
}

// PoCL's, which takes the first of these that is set.
std::string UnusableCache() {
  constexpr char kWhat[] = "write to the compile cache";
  constexpr char kAdvice[] = "set cache_directory in [worker], or ";
  if (!Variable("POCL_CACHE_DIR").empty())
    return Unusable(kWhat, "POCL_CACHE_DIR", "", W_OK | X_OK, "set another POCL_CACHE_DIR, or ");
  if (!Variable("XDG_CACHE_HOME").empty())
    return Unusable(kWhat, "XDG_CACHE_HOME", "/pocl/kcache", W_OK | X_OK, kAdvice);
  return Unusable(kWhat, "HOME", "/.cache/pocl/kcache", W_OK | X_OK, kAdvice);
}

}  // namespace

std::string UnusableFolder() {
  std::string found = Unusable("read the list of drivers", "OCL_ICD_VENDORS", "", R_OK, "");
  if (found.empty()) found = UnusableCache();
  if (found.empty()) found = Unusable("write temporary files", "TMPDIR", "", W_OK | X_OK, "");
  return found;
}

FileAccess WorkerFileAccess(const std::vector<std::string>& more) {
  FileAccess access;
  access.readable.assign(std::begin(kReadable), std::end(kReadable));
  for (const absl::string_view folder :
       absl::StrSplit(Variable("LD_LIBRARY_PATH"), ':', absl::SkipEmpty())) {
    access.readable.emplace_back(folder);
  }
  for (const absl::string_view library :
       absl::StrSplit(Variable("OCL_ICD_FILENAMES"), ':', absl::SkipEmpty())) {
    if (absl::StartsWith(library, "/")) access.readable.push_back(FolderOf(std::string(library)));
  }
  AddDrivers(&access.readable);
  std::error_code error;
  // For the sanitizers' symbols, in a build tree.
  access.readable.push_back(FolderOf(fs::read_symlink("/proc/self/exe", error).string()));
  access.readable.insert(access.readable.end(), more.begin(), more.end());
  for (const char* const pattern : kDevices) AddMatches(pattern, &access.devices);
  const std::string temporary = Variable("TMPDIR");
  AddOwn(temporary.empty() ? "/tmp" : temporary, &access.writable);
  AddOwn(Variable("POCL_CACHE_DIR"), &access.writable);
  AddOwn(Variable("CUDA_CACHE_PATH"), &access.writable);
  AddOwn(Variable("XDG_CACHE_HOME"), &access.writable);
  const std::string home = Variable("HOME");
  if (!home.empty() && Variable("XDG_CACHE_HOME").empty())
    AddOwn(home + "/.cache", &access.writable);
  if (!home.empty() && Variable("CUDA_CACHE_PATH").empty()) AddOwn(home + "/.nv", &access.writable);
  return access;
}

absl::Status ConfineWorkerFiles(const std::vector<std::string>& more) {
  return ConfineFiles(WorkerFileAccess(more));
}

}  // namespace sluice
