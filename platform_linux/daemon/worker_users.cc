// SPDX-License-Identifier: Apache-2.0
#include "broker/worker_users.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "broker/base/log.h"
#include "broker/os/process.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

constexpr char kServiceUser[] = "sluice";
constexpr uid_t kNobody = 65534;
constexpr char kDefaultCacheRoot[] = "/var/cache/sluice";
// GPUs' device nodes belong to one of these, if not to everybody.
constexpr const char* kDeviceGroups[] = {"render", "video"};

bool IsDirectory(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

// An identity as one path component, such as "uid-1000": a certificate's subject may hold anything.
std::string PathComponent(const std::string& identity_name) {
  if (identity_name.empty()) return "probe";
  const size_t colon = identity_name.find(':');
  std::string component = identity_name.substr(0, colon) + "-";
  for (const char c : identity_name.substr(colon + 1)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_';
    if (plain) {
      component += c;
    } else {
      absl::StrAppend(&component, "%", absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad2));
    }
  }
  return component;  // At most 4 + 3 * 80 bytes (gateway/auth.h): a file name may have 255.
}

// Whether this user namespace has the users of tenants (user_namespaces(7), /proc/PID/uid_map).
bool HasTenantUids() {
  std::ifstream map("/proc/self/uid_map");
  uint64_t first = 0;
  uint64_t outside = 0;
  uint64_t count = 0;
  while (map >> first >> outside >> count) {
    if (first <= kFirstTenantUid && first + count > kLastTenantUid) return true;
  }
  return false;
}

// The user that services have without an entry in passwd.
UserIdentity UserWithoutName(uid_t uid) {
  UserIdentity user;
  user.name = absl::StrCat("uid ", uid);
  user.home = "/nonexistent";
  user.uid = uid;
  user.gid = uid;
  for (const char* name : kDeviceGroups) {
    if (const absl::StatusOr<gid_t> group = LookUpGroup(name); group.ok()) {
      user.groups.push_back(*group);
    }
  }
  return user;
}

// `path` as a directory of `owner` alone. What is there and another's goes: of a daemon with other
// users, and whoever owned it may have left compiled code in it. The parent is the broker's, so
// that nobody else puts anything there.
absl::Status MakeDirectoryOf(const std::string& path, uid_t owner, gid_t group) {
  struct stat info;
  if (::lstat(path.c_str(), &info) == 0) {
    if (S_ISDIR(info.st_mode) && info.st_uid == owner) return absl::OkStatus();
    std::error_code error;
    fs::remove_all(path, error);
    if (error) return absl::InternalError(absl::StrCat("removing ", path, ": ", error.message()));
  }
  if (::mkdir(path.c_str(), 0700) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("creating ", path));
  }
  if (::lchown(path.c_str(), owner, group) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, absl::StrCat("giving ", path, " to user ", owner));
}

}  // namespace

bool IsTenantUid(uid_t uid) { return uid >= kFirstTenantUid && uid <= kLastTenantUid; }

absl::StatusOr<WorkerUsers> WorkerUsers::Create(const Config& config) {
  WorkerUsers users;
  users.cache_root_ = config.cache_directory;
  if (!IsPrivileged()) {
    if (config.worker_user.has_value()) {
      Log(LogLevel::kWarning, "broker",
          "[worker] user is ignored: only a daemon that runs as root, with users to change to, can",
          {{"user", *config.worker_user}});
    }
    return users;
  }
  const bool has_default_root = IsDirectory(kDefaultCacheRoot);
  const absl::StatusOr<UserIdentity> named = LookUpUser(config.worker_user.value_or(kServiceUser));
  if (config.worker_user.has_value()) {
    if (!named.ok()) return named.status();
    users.service_ = *named;
    if (users.cache_root_.empty() && has_default_root) users.cache_root_ = kDefaultCacheRoot;
    return users;
  }
  users.own_uids_ = HasTenantUids();
  users.service_ =
      named.ok() ? *named : UserWithoutName(users.own_uids_ ? kFirstTenantUid : kNobody);
  if (!users.own_uids_) {
    Log(LogLevel::kWarning, "broker",
        "all workers run as one user: the user namespace has no ids for one of each identity",
        {{"user", users.service_->name},
         {"advice", absl::StrCat("map the ids ", kFirstTenantUid, " to ", kLastTenantUid,
                                 " into it, or say with [worker] user that one is enough")}});
  }
  if (users.cache_root_.empty()) {
    users.cache_root_ = has_default_root
                            ? kDefaultCacheRoot
                            : config.socket.substr(0, config.socket.rfind('/')) + "/cache";
  }
  return users;
}

std::string WorkerUsers::Describe() const {
  if (own_uids_) return "one for each identity";
  return service_.has_value() ? service_->name : "";
}

absl::StatusOr<WorkerUsers::Tenant> WorkerUsers::For(const std::string& identity_name) {
  Tenant tenant{service_, ""};
  if (cache_root_.empty()) return tenant;
  if (::mkdir(cache_root_.c_str(), 0755) != 0 && errno != EEXIST) {
    return absl::ErrnoToStatus(errno, absl::StrCat("creating ", cache_root_));
  }
  tenant.cache_directory = absl::StrCat(cache_root_, "/", PathComponent(identity_name));
  if (own_uids_ && !identity_name.empty()) {
    const absl::StatusOr<uid_t> uid = TenantUid(tenant.cache_directory);
    if (!uid.ok()) return uid.status();
    tenant.user->name = absl::StrCat("uid ", *uid);
    tenant.user->home = tenant.cache_directory;
    tenant.user->uid = *uid;
    tenant.user->gid = *uid;
    // The service user's own group opens the service's files; those of the devices stay.
    std::erase(tenant.user->groups, service_->gid);
  }
  const uid_t owner = tenant.user.has_value() ? tenant.user->uid : ::geteuid();
  const gid_t group = tenant.user.has_value() ? tenant.user->gid : ::getegid();
  if (absl::Status made = MakeDirectoryOf(tenant.cache_directory, owner, group); !made.ok()) {
    if (own_uids_) return made;
    Log(LogLevel::kWarning, "broker", "no compile cache for this session",
        {{"reason", std::string(made.message())}});
    tenant.cache_directory.clear();
  }
  return tenant;
}

absl::StatusOr<uid_t> WorkerUsers::TenantUid(const std::string& directory) {
  if (const auto known = tenants_.find(directory); known != tenants_.end()) return known->second;
  struct stat info;
  const bool recorded =
      ::lstat(directory.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && IsTenantUid(info.st_uid);
  const uid_t uid = recorded ? info.st_uid : FirstFreeUid();
  if (uid > kLastTenantUid)
    return absl::ResourceExhaustedError("no user id is left for a new identity");
  tenants_[directory] = uid;
  return uid;
}

// Above all that were given out: now, or before this daemon's time.
uid_t WorkerUsers::FirstFreeUid() const {
  uid_t last = kFirstTenantUid;  // The services'.
  for (const auto& [directory, uid] : tenants_) last = std::max(last, uid);
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(cache_root_, error)) {
    struct stat info;
    if (::lstat(entry.path().c_str(), &info) == 0 && IsTenantUid(info.st_uid)) {
      last = std::max(last, info.st_uid);
    }
  }
  return last + 1;
}

}  // namespace sluice
