// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/worker_files.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "broker/os/file_access.h"
#include "broker/os/this_process.h"
#include "platform_linux/helpers/driver_files.h"
#include "platform_linux/helpers/private_root.h"

namespace sluice::worker {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxIcdBytes = 64 << 10;

// A driver's library need not lie where libraries do: its .icd file names it.
void AddDriver(const fs::path& icd_file, std::vector<std::string>* out) {
  // The broker's folder has links: the way, and what is at its end.
  out->push_back(icd_file.string());
  std::error_code error;
  const fs::path target = fs::canonical(icd_file, error);
  if (!error) out->push_back(target.string());
  std::string content;
  os::ReadFileOfThisHost(icd_file, kMaxIcdBytes, &content);
  const std::string library(absl::StripAsciiWhitespace(content.substr(0, content.find('\n'))));
  if (absl::StartsWith(library, "/")) out->push_back(os::FolderOf(library));
}

void AddDrivers(std::vector<std::string>* out) {
  std::string vendors = os::Variable("OCL_ICD_VENDORS");
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

// With less room than this there is none: a driver writes some hundred KB for a program.
constexpr uint64_t kLeastRoomBytes = 1 << 20;

bool IsFull(const std::string& folder) {
  struct statvfs room;
  if (::statvfs(folder.c_str(), &room) != 0 || room.f_blocks == 0) return false;
  return uint64_t{room.f_bavail} * room.f_frsize < kLeastRoomBytes ||
         (room.f_files != 0 && room.f_favail == 0);
}

// "Permission denied at /home/x", if this user cannot use `path` as `wanted`; "" if it can. A
// folder to write in may be missing if it can be made; one to read may be missing.
std::string ObstacleOn(const std::string& path, int wanted) {
  std::string above = "/";
  for (size_t end = 0; end != path.npos;) {
    end = path.find('/', end + 1);
    const std::string here = path.substr(0, end);
    // With the slash, a file that is no folder is refused for that reason.
    const bool is_way = end != path.npos;
    if (::access(is_way ? (here + "/").c_str() : here.c_str(), is_way ? X_OK : wanted) == 0) {
      above = here;
      continue;
    }
    if (errno != ENOENT) return absl::StrCat(std::strerror(errno), " at ", here);
    if ((wanted & W_OK) == 0) return "";
    if (::access(above.c_str(), W_OK | X_OK) == 0) break;
    return absl::StrCat(std::strerror(errno), " at ", above);
  }
  if ((wanted & W_OK) == 0 || !IsFull(above)) return "";
  return absl::StrCat(std::strerror(ENOSPC), " at ", above);
}

// Says what this user cannot do below the folder that the variable names; "" if nothing, or it
// names none.
std::string Unusable(const char* what, const char* variable, const char* below, int wanted,
                     const char* advice) {
  const std::string folder = os::Variable(variable);
  if (!absl::StartsWith(folder, "/")) return "";
  const std::string obstacle = ObstacleOn(folder + below, wanted);
  if (obstacle.empty()) return "";
  const bool is_full = absl::StartsWith(obstacle, std::strerror(ENOSPC));
  return absl::StrCat("user ", ::geteuid(), " cannot ", what, ": ", obstacle, "; ", advice,
                      is_full ? "make room there (" : "give access there (", variable, "=", folder,
                      ")");
}

// For PoCL's cache: PoCL takes the first of these variables that is set.
std::string UnusableCache() {
  constexpr char kWhat[] = "write to the compile cache";
  constexpr char kAdvice[] = "set cache_directory in [worker], or ";
  if (!os::Variable("POCL_CACHE_DIR").empty())
    return Unusable(kWhat, "POCL_CACHE_DIR", "", W_OK | X_OK, "set another POCL_CACHE_DIR, or ");
  if (!os::Variable("XDG_CACHE_HOME").empty())
    return Unusable(kWhat, "XDG_CACHE_HOME", "/pocl/kcache", W_OK | X_OK, kAdvice);
  return Unusable(kWhat, "HOME", "/.cache/pocl/kcache", W_OK | X_OK, kAdvice);
}

// As it was before this process had a root of its own, in which every obstacle looks alike.
std::string& UnusableBefore() {
  static std::string& before = *new std::string;
  return before;
}

}  // namespace

std::string UnusableFolder() {
  if (!UnusableBefore().empty()) return UnusableBefore();
  std::string found = Unusable("read the list of drivers", "OCL_ICD_VENDORS", "", R_OK, "");
  if (found.empty()) found = UnusableCache();
  if (found.empty()) found = Unusable("write temporary files", "TMPDIR", "", W_OK | X_OK, "");
  return found;
}

// The first of these that is set, as UnusableCache.
std::string CompileCacheFolder() {
  if (const std::string own = os::Variable("POCL_CACHE_DIR"); !own.empty()) return own;
  if (const std::string xdg = os::Variable("XDG_CACHE_HOME"); !xdg.empty())
    return xdg + "/pocl/kcache";
  const std::string home = os::Variable("HOME");
  return home.empty() ? "" : home + "/.cache/pocl/kcache";
}

os::FileAccess WorkerFileAccess(const std::vector<std::string>& more,
                                const std::vector<std::string>& programs) {
  os::FileAccess access = os::DriverFiles();
  for (const absl::string_view library :
       absl::StrSplit(os::Variable("OCL_ICD_FILENAMES"), ':', absl::SkipEmpty())) {
    if (absl::StartsWith(library, "/"))
      access.readable.push_back(os::FolderOf(std::string(library)));
  }
  AddDrivers(&access.readable);
  access.readable.insert(access.readable.end(), more.begin(), more.end());
  access.executable = os::CompilersPrograms();
  access.executable.insert(access.executable.end(), programs.begin(), programs.end());
  const std::string temporary = os::Variable("TMPDIR");
  AddOwn(temporary.empty() ? "/tmp" : temporary, &access.writable);
  AddOwn(os::Variable("POCL_CACHE_DIR"), &access.writable);
  AddOwn(os::Variable("CUDA_CACHE_PATH"), &access.writable);
  AddOwn(os::Variable("XDG_CACHE_HOME"), &access.writable);
  const std::string home = os::Variable("HOME");
  if (!home.empty() && os::Variable("XDG_CACHE_HOME").empty())
    AddOwn(home + "/.cache", &access.writable);
  if (!home.empty() && os::Variable("CUDA_CACHE_PATH").empty())
    AddOwn(home + "/.nv", &access.writable);
  return access;
}

absl::Status EnterWorkersRoot(const std::vector<std::string>& more,
                              const std::vector<std::string>& programs) {
  return os::EnterPrivateRoot(WorkerFileAccess(more, programs));
}

absl::Status ConfineWorkerFiles(const std::vector<std::string>& more,
                                const std::vector<std::string>& programs, bool private_root) {
  const os::FileAccess access = WorkerFileAccess(more, programs);
  if (private_root) {
    UnusableBefore() = UnusableFolder();
    if (absl::Status entered = os::EnterPrivateRoot(access); !entered.ok())
      return absl::InternalError(absl::StrCat("a root of its own: ", entered.message()));
  }
  return os::ConfineFiles(access);
}

void LeaveDaemonsFolder() {
  // Without such a folder the working directory stays as it is.
  [[maybe_unused]] const int result = ::chdir(os::Variable("TMPDIR").c_str());
}

}  // namespace sluice::worker
