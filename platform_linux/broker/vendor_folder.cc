// SPDX-License-Identifier: Apache-2.0
#include "broker/vendor_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "broker/base/daemon_places.h"
#include "broker/base/log.h"
#include "broker/os/scoped_handle.h"
#include "broker/os/this_process.h"

namespace sluice::broker {
namespace {

namespace fs = std::filesystem;

constexpr char kVariable[] = "OCL_ICD_VENDORS";
constexpr size_t kMaxIcdBytes = 64 << 10;
constexpr char kSystemFolder[] = "/etc/OpenCL/vendors";

fs::path VendorsOf(const std::string& socket_path) { return StateFileOf(socket_path, ".vendors"); }

bool NamesOwnDriver(const fs::path& icd_file) {
  std::string content;
  return os::ReadFileOfThisHost(icd_file, kMaxIcdBytes, &content) &&
         absl::StrContains(content.substr(0, content.find('\n')), "libsluice_icd");
}

// True for the value that `sluicectl run` sets. For a daemon that is started from there it is no
// choice of drivers.
bool NamesOwnDriverAlone(const fs::path& vendors) {
  std::error_code error;
  if (fs::is_regular_file(vendors, error)) return NamesOwnDriver(vendors);
  bool own = false;
  for (const auto& entry : fs::directory_iterator(vendors, error)) {
    if (entry.path().extension() != ".icd") continue;
    if (!NamesOwnDriver(entry.path())) return false;
    own = true;
  }
  return own;
}

std::string HostsFolder(const std::map<std::string, std::string>& worker_environment) {
  if (const auto given = worker_environment.find(kVariable); given != worker_environment.end()) {
    return given->second;
  }
  const char* own = std::getenv(kVariable);
  if (own == nullptr || *own == '\0') return kSystemFolder;
  if (!NamesOwnDriverAlone(own)) return own;
  Log(LogLevel::kWarning, "broker",
      "OCL_ICD_VENDORS names Sluice's own driver alone: the daemon looks for drivers elsewhere",
      {{"OCL_ICD_VENDORS", own}, {"instead", kSystemFolder}});
  return kSystemFolder;
}

// Makes the daemon's own folder, which nobody else may fill or replace: every worker loads the
// libraries that its files name.
absl::Status MakeFolder(const fs::path& folder) {
  const auto refused = [&folder](const std::string& why) {
    return absl::FailedPreconditionError(absl::StrCat(
        folder.string(), ", the list of drivers for workers, ", why,
        "; have the socket in a folder that only the daemon's user may write, and remove this"));
  };
  struct stat info;
  const fs::path parent = folder.has_parent_path() ? folder.parent_path() : fs::path(".");
  if (::stat(parent.c_str(), &info) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("looking at ", parent.string()));
  if ((info.st_mode & S_IWOTH) != 0 && (info.st_mode & S_ISVTX) == 0)
    return refused("lies where anybody may put another in its place");
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    return absl::ErrnoToStatus(errno, absl::StrCat("creating ", folder.string()));
  const os::UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.valid()) {
    if (errno == ELOOP || errno == ENOTDIR) return refused("is there already, and is no folder");
    return absl::ErrnoToStatus(errno, absl::StrCat("opening ", folder.string()));
  }
  if (::fstat(fd.get(), &info) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("looking at ", folder.string()));
  if (info.st_uid != ::geteuid()) return refused("is there already, and is another user's");
  // Whatever the umask is: workers run as other users.
  if (::fchmod(fd.get(), 0755) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("opening ", folder.string(), " to workers"));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> FillVendorFolder(
    const std::string& socket_path, const std::map<std::string, std::string>& worker_environment) {
  const fs::path hosts = HostsFolder(worker_environment);
  std::error_code error;
  if (!fs::is_directory(hosts, error)) return std::string();
  const fs::path folder = VendorsOf(socket_path);
  if (absl::Status made = MakeFolder(folder); !made.ok()) return made;
  // Changed entry by entry: a worker may be reading it.
  std::map<std::string, fs::path> wanted;
  for (const auto& entry : fs::directory_iterator(hosts, error)) {
    if (entry.path().extension() != ".icd" || NamesOwnDriver(entry.path())) continue;
    wanted[entry.path().filename()] = fs::absolute(entry.path());
  }
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const auto kept = wanted.find(entry.path().filename());
    std::error_code unreadable;
    if (kept != wanted.end() && fs::read_symlink(entry.path(), unreadable) == kept->second) {
      wanted.erase(kept);
    } else if (!entry.is_symlink(unreadable)) {
      return absl::FailedPreconditionError(absl::StrCat(
          entry.path().string(), " is no file of Sluice's, which fills that folder: move it away"));
    } else {
      fs::remove(entry.path(), error);
    }
  }
  for (const auto& [name, target] : wanted) fs::create_symlink(target, folder / name, error);
  if (error) {
    return absl::InternalError(absl::StrCat("filling ", folder.string(), ": ", error.message()));
  }
  // CUDA's loader appends a file's name without a slash.
  return folder.string() + "/";
}

void RemoveVendorFolder(const std::string& socket_path) {
  std::error_code ignored;
  fs::remove_all(VendorsOf(socket_path), ignored);
}

}  // namespace sluice::broker
