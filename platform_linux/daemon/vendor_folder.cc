// SPDX-License-Identifier: Apache-2.0
#include "broker/vendor_folder.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "broker/base/log.h"
#include "broker/os/this_process.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

constexpr char kVariable[] = "OCL_ICD_VENDORS";
constexpr size_t kMaxIcdBytes = 64 << 10;
constexpr char kSystemFolder[] = "/etc/OpenCL/vendors";

fs::path FolderBeside(const std::string& socket_path) { return socket_path + ".vendors"; }

bool NamesOwnDriver(const fs::path& icd_file) {
  std::string content;
  return ReadFileOfThisHost(icd_file, kMaxIcdBytes, &content) &&
         absl::StrContains(content.substr(0, content.find('\n')), "libsluice_icd");
}

// As `sluicectl run` sets it: for a daemon that is started from there, no choice of drivers at all.
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

}  // namespace

absl::StatusOr<std::string> FillVendorFolder(
    const std::string& socket_path, const std::map<std::string, std::string>& worker_environment) {
  const fs::path hosts = HostsFolder(worker_environment);
  std::error_code error;
  if (!fs::is_directory(hosts, error)) return std::string();
  const fs::path folder = FolderBeside(socket_path);
  if (::mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST) {
    return absl::ErrnoToStatus(errno, absl::StrCat("creating ", folder.string()));
  }
  // Changed entry by entry: a worker may be looking.
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
    } else {
      fs::remove_all(entry.path(), error);
    }
  }
  for (const auto& [name, target] : wanted) fs::create_symlink(target, folder / name, error);
  if (error) {
    return absl::InternalError(absl::StrCat("filling ", folder.string(), ": ", error.message()));
  }
  return folder.string();
}

void RemoveVendorFolder(const std::string& socket_path) {
  std::error_code ignored;
  fs::remove_all(FolderBeside(socket_path), ignored);
}

}  // namespace sluice
