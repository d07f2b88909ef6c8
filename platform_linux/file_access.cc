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

#include "absl/strings/str_cat.h"
#include "broker/os/scoped_handle.h"

namespace sluice {
namespace {

// What <linux/landlock.h> of Debian 12 does not have yet, by the version that brought it.
constexpr uint64_t kRefer = uint64_t{1} << 13;        // 2
constexpr uint64_t kTruncate = uint64_t{1} << 14;     // 3
constexpr uint64_t kIoctlDevice = uint64_t{1} << 15;  // 5
constexpr uint64_t kBindTcp = 1;                      // 4
constexpr uint64_t kConnectTcp = 2;
constexpr uint64_t kScopeAbstractSockets = 1;  // 6
constexpr uint64_t kScopeSignals = 2;

// As the kernel's struct, with the fields of versions 4 and 6.
struct Ruleset {
  uint64_t files;
  uint64_t network;
  uint64_t scoped;
};

constexpr uint64_t kRead =
    LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_EXECUTE;
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
  return version >= 4 ? offsetof(Ruleset, scoped) : offsetof(Ruleset, network);
}

absl::Status Failed(const char* what) {
  return absl::InternalError(absl::StrCat(what, ": ", std::strerror(errno)));
}

absl::Status Allow(int ruleset, const std::string& path, uint64_t rights) {
  const UniqueFd file(::open(path.c_str(), O_PATH | O_CLOEXEC));
  struct stat info;
  if (!file.valid() || ::fstat(file.get(), &info) != 0) return absl::OkStatus();
  if (!S_ISDIR(info.st_mode)) rights &= kFileRights;
  landlock_path_beneath_attr rule = {};
  rule.allowed_access = rights;
  rule.parent_fd = file.get();
  if (::syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) != 0)
    return Failed(absl::StrCat("landlock_add_rule for ", path).c_str());
  return absl::OkStatus();
}

absl::Status AllowAll(int ruleset, const std::vector<std::string>& paths, uint64_t rights) {
  for (const std::string& path : paths) {
    if (absl::Status status = Allow(ruleset, path, rights); !status.ok()) return status;
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
  absl::Status status = AllowAll(ruleset.get(), access.readable, kRead);
  if (status.ok()) status = AllowAll(ruleset.get(), access.writable, all & ~kIoctlDevice);
  const uint64_t device =
      kRead | LANDLOCK_ACCESS_FS_WRITE_FILE | ((kTruncate | kIoctlDevice) & all);
  if (status.ok()) status = AllowAll(ruleset.get(), access.devices, device);
  if (!status.ok()) return status;
  // Without privileges, only a process that cannot gain any may confine itself.
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return Failed("prctl(PR_SET_NO_NEW_PRIVS)");
  if (::syscall(SYS_landlock_restrict_self, ruleset.get(), 0) != 0)
    return Failed("landlock_restrict_self");
  return absl::OkStatus();
}

}  // namespace sluice
