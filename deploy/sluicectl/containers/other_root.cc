// SPDX-License-Identifier: Apache-2.0
#include "deploy/sluicectl/containers/other_root.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "broker/os/file.h"
#include "proto/status_macros.h"

namespace sluice::ctl {
namespace {

constexpr size_t kMaxEnvironmentBytes = size_t{4} << 20;
constexpr size_t kMaxNames = 4096;

absl::StatusOr<os::UniqueFd> OpenInRoot(int root, const std::string& path, uint64_t flags) {
  open_how how = {};
  how.flags = flags | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  os::UniqueFd fd(static_cast<int>(::syscall(SYS_openat2, root, path.c_str(), &how, sizeof(how))));
  if (!fd.valid()) return absl::ErrnoToStatus(errno, path);
  return fd;
}

std::string Link(const std::string& path) {
  std::error_code error;
  return std::filesystem::read_symlink(path, error).string();
}

}  // namespace

absl::StatusOr<OtherRoot> OtherRoot::Open(pid_t pid) {
  const std::string process = absl::StrCat("/proc/", pid);
  os::UniqueFd root(::open((process + "/root").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root.valid()) {
    if (errno == ENOENT) return absl::NotFoundError(absl::StrCat("there is no process ", pid));
    return absl::ErrnoToStatus(errno, absl::StrCat("process ", pid));
  }
  OtherRoot other(pid, std::move(root));
  struct stat theirs = {};
  struct stat own = {};
  other.ours_ = Link(process + "/ns/mnt") == Link("/proc/self/ns/mnt") &&
                ::fstat(other.root_.get(), &theirs) == 0 && ::stat("/", &own) == 0 &&
                theirs.st_ino == own.st_ino && theirs.st_dev == own.st_dev;
  other.ReadEnvironment();
  return other;
}

void OtherRoot::ReadEnvironment() {
  const absl::StatusOr<std::string> text =
      os::ReadNamedFile(absl::StrCat("/proc/", pid_, "/environ"), kMaxEnvironmentBytes);
  if (!text.ok()) return;
  for (const absl::string_view entry : absl::StrSplit(*text, '\0', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> pair = absl::StrSplit(entry, absl::MaxSplits('=', 1));
    environment_.insert(pair);
  }
}

absl::StatusOr<os::UniqueFd> OtherRoot::Find(const std::string& path) const {
  return OpenInRoot(root_.get(), path, O_PATH);
}

absl::StatusOr<os::UniqueFd> OtherRoot::OpenFile(const std::string& path) const {
  // Looked at before it is opened: opening a device may do something.
  ASSIGN_OR_RETURN(const os::UniqueFd found, Find(path));
  struct stat info = {};
  if (::fstat(found.get(), &info) != 0) return absl::ErrnoToStatus(errno, path);
  if (!S_ISREG(info.st_mode))
    return absl::InvalidArgumentError(absl::StrCat(path, " is no regular file"));
  os::UniqueFd fd(
      ::open(absl::StrCat("/proc/self/fd/", found.get()).c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return absl::ErrnoToStatus(errno, path);
  return fd;
}

absl::StatusOr<std::string> OtherRoot::ReadFile(const std::string& path, size_t max_bytes) const {
  ASSIGN_OR_RETURN(const os::UniqueFd fd, OpenFile(path));
  return os::ReadToEnd(fd.get(), max_bytes);
}

std::vector<std::string> OtherRoot::List(const std::string& folder) const {
  std::vector<std::string> names;
  absl::StatusOr<os::UniqueFd> fd = OpenInRoot(root_.get(), folder, O_RDONLY | O_DIRECTORY);
  if (!fd.ok()) return names;
  DIR* listing = ::fdopendir(fd->get());
  if (listing == nullptr) return names;
  static_cast<void>(fd->release());  // The listing's own now.
  while (const dirent* entry = ::readdir(listing)) {
    if (names.size() < kMaxNames) names.emplace_back(entry->d_name);
  }
  ::closedir(listing);
  std::sort(names.begin(), names.end());
  return names;
}

std::string OtherRoot::Variable(const std::string& name) const {
  const auto found = environment_.find(name);
  return found == environment_.end() ? "" : found->second;
}

absl::StatusOr<os::UniqueFd> OtherRoot::Program() const {
  const std::string path = absl::StrCat("/proc/", pid_, "/exe");
  os::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return absl::ErrnoToStatus(errno, path);
  return fd;
}

}  // namespace sluice::ctl
