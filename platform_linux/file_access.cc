// SPDX-License-Identifier: Apache-2.0
#include "broker/os/file_access.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "broker/os/scoped_handle.h"
#include "platform_linux/path_walk.h"

namespace sluice::os {
namespace {

// Constants that <linux/landlock.h> of Debian 12 does not have yet, with landlock's version that
// brought each.
constexpr uint64_t kRefer = uint64_t{1} << 13;        // 2
constexpr uint64_t kTruncate = uint64_t{1} << 14;     // 3
constexpr uint64_t kIoctlDevice = uint64_t{1} << 15;  // 5
constexpr uint64_t kBindTcp = 1;                      // 4
constexpr uint64_t kConnectTcp = 2;
constexpr int kPortRule = 2;
constexpr int kFirstWithPorts = 4;
constexpr uint64_t kScopeAbstractSockets = 1;  // 6
constexpr uint64_t kScopeSignals = 2;

// As the kernel's struct, with the fields of versions 4 and 6.
struct Ruleset {
  uint64_t files;
  uint64_t network;
  uint64_t scoped;
};
struct PortRule {
  uint64_t rights;
  uint64_t port;
};

constexpr uint64_t kRead = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr uint64_t kRun = kRead | LANDLOCK_ACCESS_FS_EXECUTE;
constexpr uint64_t kFileRights = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_EXECUTE |
                                 LANDLOCK_ACCESS_FS_WRITE_FILE | kTruncate | kIoctlDevice;
constexpr uint64_t kFirstVersion = LANDLOCK_ACCESS_FS_MAKE_SYM * 2 - 1;  // All up to that one.

uint64_t KnownRights(int version) {
  uint64_t rights = kFirstVersion;
  if (version >= 2) rights |= kRefer;
  if (version >= 3) rights |= kTruncate;
  if (version >= 5) rights |= kIoctlDevice;
  return rights;
}

size_t RulesetBytes(int version) {
  if (version >= 6) return sizeof(Ruleset);
  return version >= kFirstWithPorts ? offsetof(Ruleset, scoped) : offsetof(Ruleset, network);
}

absl::Status Failed(const char* what) {
  return absl::InternalError(absl::StrCat(what, ": ", std::strerror(errno)));
}

// Leaves out paths below a writable folder: that folder's rule holds there already, and a process
// that was confined to it may have put a link to elsewhere there. Links on the way to the folder
// are the operator's. (If a path's name hides that it lies below, and it leads above the folder,
// then the folder's own rule goes, too: the process that made such a link only loses by it.)
absl::Status Allow(int ruleset, const std::vector<Way>& ways, const std::vector<FileId>& own,
                   uint64_t rights) {
  for (const Way& way : ways) {
    if (!way.end.valid() || LeadsThrough(way, own)) continue;
    landlock_path_beneath_attr rule = {};
    rule.allowed_access = S_ISDIR(way.end.info.st_mode) ? rights : rights & kFileRights;
    rule.parent_fd = way.end.fd.get();
    if (::syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) != 0)
      return Failed("landlock_add_rule");
  }
  return absl::OkStatus();
}

absl::Status AllowPorts(int ruleset, const std::vector<uint16_t>& ports, uint64_t right) {
  for (const uint16_t port : ports) {
    const PortRule rule = {right, port};
    // EAFNOSUPPORT: a kernel without TCP.
    if (::syscall(SYS_landlock_add_rule, ruleset, kPortRule, &rule, 0) != 0 &&
        errno != EAFNOSUPPORT) {
      return Failed("landlock_add_rule of a port");
    }
  }
  return absl::OkStatus();
}

}  // namespace

int FileConfinementVersion() {
  const long version =
      ::syscall(SYS_landlock_create_ruleset, nullptr, size_t{0}, LANDLOCK_CREATE_RULESET_VERSION);
  return version > 0 ? static_cast<int>(version) : 0;
}

std::string UnconfinedReason() {
  return FileConfinementVersion() == 0 ? "this system has no landlock" : "";
}

absl::Status ConfineFiles(const FileAccess& access) {
  const int version = FileConfinementVersion();
  if (version == 0) return absl::UnavailableError("the kernel has no landlock");
  const uint64_t all = KnownRights(version);
  const Ruleset attributes = {all, kBindTcp | kConnectTcp, kScopeAbstractSockets | kScopeSignals};
  const UniqueFd ruleset(static_cast<int>(
      ::syscall(SYS_landlock_create_ruleset, &attributes, RulesetBytes(version), 0)));
  if (!ruleset.valid()) return Failed("landlock_create_ruleset");
  const std::vector<Way> writable = WalkAll(access.writable, access.writable);
  std::vector<FileId> own;
  for (const Way& way : writable) {
    if (way.end.valid()) own.push_back(way.end.id());
  }
  absl::Status status = Allow(ruleset.get(), WalkAll(access.readable, access.writable), own, kRead);
  if (status.ok())
    status = Allow(ruleset.get(), WalkAll(access.executable, access.writable), own, kRun);
  // A confined process does not run files that it has written itself.
  constexpr uint64_t kNotInFolders = kIoctlDevice | LANDLOCK_ACCESS_FS_EXECUTE;
  if (status.ok()) status = Allow(ruleset.get(), writable, own, all & ~kNotInFolders);
  const uint64_t device =
      kRead | LANDLOCK_ACCESS_FS_WRITE_FILE | ((kTruncate | kIoctlDevice) & all);
  if (status.ok()) status = Allow(ruleset.get(), WalkAll(access.devices, {}), {}, device);
  if (version >= kFirstWithPorts) {
    if (status.ok()) status = AllowPorts(ruleset.get(), access.listen_ports, kBindTcp);
    if (status.ok()) status = AllowPorts(ruleset.get(), access.connect_ports, kConnectTcp);
  }
  if (!status.ok()) return status;
  // Without privileges, only a process that cannot gain any may confine itself.
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return Failed("prctl(PR_SET_NO_NEW_PRIVS)");
  if (::syscall(SYS_landlock_restrict_self, ruleset.get(), 0) != 0)
    return Failed("landlock_restrict_self");
  return absl::OkStatus();
}

}  // namespace sluice::os
