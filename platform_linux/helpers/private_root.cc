// SPDX-License-Identifier: Apache-2.0
#include "platform_linux/helpers/private_root.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "broker/os/scoped_handle.h"
#include "platform_linux/path_walk.h"

namespace sluice::os {
namespace {

// <sys/mount.h> of glibc and <linux/mount.h> do not go together, and Debian 12's has not all.
constexpr int kRecursively = 0x8000;         // AT_RECURSIVE
constexpr unsigned long kRecursive = 16384;  // MS_REC
constexpr unsigned long kPrivate = 1 << 18;  // MS_PRIVATE
constexpr int kDetach = 2;                   // MNT_DETACH
constexpr mode_t kFolderMode = 0755;

constexpr uint64_t kShownOnly = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
constexpr uint64_t kWritable = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
constexpr uint64_t kDevice = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC;
constexpr uint64_t kNothing = kShownOnly | MOUNT_ATTR_NOEXEC;

// Whole, since the folder of a process is known by its number: file access says what is read.
constexpr char kProcesses[] = "/proc";

absl::Status Failed(const std::string& what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(errno)));
}

bool IsAt(const std::string& path, const std::string& folder) {
  return absl::StartsWith(path, folder) &&
         (path.size() == folder.size() || path[folder.size()] == '/');
}

bool Restrict(int mount, uint64_t attributes, int flags) {
  mount_attr wanted = {};
  wanted.attr_set = attributes;
  return ::syscall(SYS_mount_setattr, mount, "", AT_EMPTY_PATH | flags, &wanted, sizeof(wanted)) ==
         0;
}

class PrivateRoot {
 public:
  // An empty folder in memory, on top of the old root, which this process still sees.
  absl::Status Make() {
    if (::unshare(CLONE_NEWNS) != 0) return Failed("unshare of mounts");
    if (::syscall(SYS_mount, "", "/", nullptr, kRecursive | kPrivate, nullptr) != 0)
      return Failed("keeping mounts to itself");
    const UniqueFd memory(static_cast<int>(::syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC)));
    if (!memory.valid()) return Failed("fsopen");
    if (::syscall(SYS_fsconfig, memory.get(), FSCONFIG_SET_STRING, "mode", "0755", 0) != 0 ||
        ::syscall(SYS_fsconfig, memory.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0)
      return Failed("a root in memory");
    root_.reset(
        static_cast<int>(::syscall(SYS_fsmount, memory.get(), FSMOUNT_CLOEXEC, MOUNT_ATTR_NODEV)));
    if (!root_.valid()) return Failed("fsmount");
    if (::syscall(SYS_move_mount, root_.get(), "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH) != 0)
      return Failed("mounting a root");
    return absl::OkStatus();
  }

  // A part of a folder that is shown like this is there already.
  absl::Status Show(const std::vector<Way>& ways, const std::vector<FileId>& own,
                    uint64_t attributes) {
    for (const Way& way : ways) {
      if (!way.end.valid() || way.at.empty() || LeadsThrough(way, own)) continue;
      if (absl::Status made = Lead(way); !made.ok()) return made;
      const bool shown = std::any_of(shown_.begin(), shown_.end(), [&](const auto& there) {
        return IsAt(way.at, there.first) &&
               (attributes == kShownOnly || attributes == there.second);
      });
      if (shown) continue;
      if (absl::Status mounted = Mount(way, attributes); !mounted.ok()) return mounted;
      shown_.emplace_back(way.at, attributes);
    }
    return absl::OkStatus();
  }

  // Nothing of the old root is left.
  absl::Status Enter() {
    if (!Restrict(root_.get(), kNothing, 0)) return Failed("mount_setattr of the root");
    if (::fchdir(root_.get()) != 0 || ::syscall(SYS_pivot_root, ".", ".") != 0)
      return Failed("pivot_root");
    // The old root lies on top of the new one now.
    if (::syscall(SYS_umount2, ".", kDetach) != 0) return Failed("leaving the old root");
    return ::chdir("/") == 0 ? absl::OkStatus() : Failed("the root");
  }

 private:
  // Makes the folders and links on the way. They are there already below what is shown.
  absl::Status Lead(const Way& way) {
    for (const PathStep& step : way.steps) {
      const char* const name = step.at.c_str() + 1;
      const int made = step.link.empty() ? ::mkdirat(root_.get(), name, kFolderMode)
                                         : ::symlinkat(step.link.c_str(), root_.get(), name);
      if (made != 0 && errno != EEXIST) return Failed(step.at);
    }
    return absl::OkStatus();
  }

  absl::Status Mount(const Way& way, uint64_t attributes) {
    const int whole = S_ISDIR(way.end.info.st_mode) ? kRecursively : 0;
    const UniqueFd tree(static_cast<int>(::syscall(
        SYS_open_tree, way.end.fd.get(), "",
        static_cast<unsigned>(OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | whole))));
    if (!tree.valid()) return Failed(absl::StrCat("open_tree of ", way.at));
    if (!Restrict(tree.get(), attributes, whole))
      return Failed(absl::StrCat("mount_setattr of ", way.at));
    const char* const name = way.at.c_str() + 1;
    const int made = whole != 0 ? ::mkdirat(root_.get(), name, kFolderMode)
                                : ::mknodat(root_.get(), name, S_IFREG, 0);
    if (made != 0 && errno != EEXIST) return Failed(way.at);
    if (::syscall(SYS_move_mount, tree.get(), "", root_.get(), name, MOVE_MOUNT_F_EMPTY_PATH) != 0)
      return Failed(absl::StrCat("mounting ", way.at));
    return absl::OkStatus();
  }

  UniqueFd root_;
  std::vector<std::pair<std::string, uint64_t>> shown_;  // With their attributes.
};

std::vector<std::string> WithoutProcesses(std::vector<std::string> paths) {
  paths.erase(std::remove_if(paths.begin(), paths.end(),
                             [](const std::string& path) { return IsAt(path, kProcesses); }),
              paths.end());
  return paths;
}

}  // namespace

absl::Status EnterPrivateRoot(const FileAccess& access) {
  PrivateRoot root;
  absl::Status status = root.Make();
  if (!status.ok()) return status;
  const std::vector<Way> writable = WalkAll(access.writable, access.writable);
  std::vector<FileId> own;
  for (const Way& way : writable) {
    if (way.end.valid()) own.push_back(way.end.id());
  }
  const auto show = [&](const std::vector<std::string>& paths, uint64_t attributes) {
    if (status.ok())
      status = root.Show(WalkAll(WithoutProcesses(paths), access.writable), own, attributes);
  };
  show(access.readable, kShownOnly);
  show(access.executable, kShownOnly);
  if (status.ok()) status = root.Show(WalkAll({kProcesses}, {}), {}, kNothing);
  if (status.ok()) status = root.Show(WalkAll(access.devices, {}), {}, kDevice);
  if (status.ok()) status = root.Show(writable, own, kWritable);
  return status.ok() ? root.Enter() : status;
}

}  // namespace sluice::os
