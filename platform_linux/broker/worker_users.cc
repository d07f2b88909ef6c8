// SPDX-License-Identifier: Apache-2.0
#include "broker/children/worker_users.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "broker/base/daemon_places.h"
#include "broker/base/log.h"
#include "broker/children/cache_folder.h"
#include "broker/os/lasting_thread.h"
#include "broker/os/process.h"
#include "broker/os/this_process.h"
#include "broker/tenants/tenant.h"

namespace sluice::broker {
namespace {

namespace fs = std::filesystem;

constexpr char kServiceUser[] = "sluice";
constexpr uid_t kNobody = 65534;
constexpr char kDefaultCacheRoot[] = "/var/cache/sluice";
constexpr size_t kForgottenAtOnce = 256;
constexpr char kGone[] = ".gone-";  // The name of a folder that is being removed begins so; no
                                    // identity's name does.
// GPUs' device nodes belong to one of these, if not to everybody.
constexpr const char* kDeviceGroups[] = {"render", "video"};

bool IsDirectory(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

std::string PathComponent(const std::string& identity_name) {
  return identity_name.empty() ? "probe" : FolderNameOf(identity_name);
}

// The directory of a container: its name ends with "_" and 16 digits.
bool IsContainers(const std::string& component) {
  constexpr size_t kDigits = 16;
  if (component.size() <= kDigits + 1) return false;
  const size_t mark = component.size() - kDigits - 1;
  return component[mark] == '_' &&
         component.find_first_not_of("0123456789abcdef", mark + 1) == std::string::npos;
}

// True if an identity is more than a user: other users' programs may be in its container.
bool IsDomain(const std::string& identity_name) {
  return identity_name.starts_with("container:") || identity_name.starts_with("unseen:") ||
         identity_name.starts_with("tenant:");
}

// For a daemon that keeps no caches of its own.
std::string OwnDomainRoot(const std::string& socket) {
  if (os::IsPrivileged()) return StateFolderOf(socket) + "/cache";
  const std::string xdg = os::EnvironmentVariable("XDG_CACHE_HOME").value_or("");
  if (xdg.starts_with('/')) return xdg + "/sluice-tenants";
  const std::string home = os::EnvironmentVariable("HOME").value_or("");
  return home.starts_with('/') && IsDirectory(home + "/.cache") ? home + "/.cache/sluice-tenants"
                                                                : StateFolderOf(socket) + "/cache";
}

int64_t Nanoseconds(const timespec& time) {
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

int64_t NowNs() {
  timespec now = {};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return Nanoseconds(now);
}

// The state of a directory, which changes with its entries: its time, and the number of directories
// in it where the file system counts them, since two changes may have the same time.
std::pair<int64_t, uint64_t> StateOf(const std::string& directory) {
  struct stat info;
  if (::stat(directory.c_str(), &info) != 0) return {-1, 0};
  return {Nanoseconds(info.st_mtim), info.st_nlink};
}

// The users that any process has as one of its own; nothing if that cannot be found out.
std::optional<std::set<uid_t>> UidsOfProcesses() {
  std::set<uid_t> uids;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream status(entry.path() / "status");
    std::string word;
    while (status >> word && word != "Uid:") {
    }
    for (uid_t uid; status >> uid;) uids.insert(uid);
  }
  if (error || uids.empty()) return std::nullopt;
  return uids;
}

// Not on the loop: they may be large. Nobody can change them meanwhile.
void RemoveElsewhere(std::vector<std::string> directories) {
  if (directories.empty()) return;
  // Without a thread they stay until the next start.
  (void)os::StartOnLastingThread([directories = std::move(directories)] {
    for (const std::string& directory : directories) {
      if (RemoveCache(directory)) continue;
      Log(LogLevel::kWarning, "broker", "a forgotten compile cache could not be removed",
          {{"folder", directory}});
    }
  });
}

// True if this user namespace has the users of tenants (user_namespaces(7), /proc/PID/uid_map).
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
os::UserIdentity UserWithoutName(uid_t uid) {
  os::UserIdentity user;
  user.name = absl::StrCat("uid ", uid);
  user.home = "/nonexistent";
  user.uid = uid;
  user.gid = uid;
  for (const char* name : kDeviceGroups) {
    if (const absl::StatusOr<gid_t> group = os::LookUpGroup(name); group.ok()) {
      user.groups.push_back(*group);
    }
  }
  return user;
}

// Makes `path` a directory of `owner` alone. Removes one that belongs to another user, who may have
// left compiled code in it: it is of a daemon with other users. The parent is the broker's, so that
// nobody else can put anything there.
absl::Status MakeDirectoryOf(const std::string& path, uid_t owner, gid_t group) {
  struct stat info;
  if (::lstat(path.c_str(), &info) == 0) {
    if (S_ISDIR(info.st_mode) && info.st_uid == owner) return absl::OkStatus();
    if (!RemoveCache(path)) return absl::ErrnoToStatus(errno, absl::StrCat("removing ", path));
  }
  if (::mkdir(path.c_str(), 0700) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("creating ", path));
  }
  if (::lchown(path.c_str(), owner, group) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, absl::StrCat("giving ", path, " to user ", owner));
}

// Whoever may rename its entries puts programs into others' workers.
absl::Status MakeRoot(const std::string& root) {
  // Whatever the umask is: workers run as other users.
  if (::mkdir(root.c_str(), 0755) == 0) {
    if (::chmod(root.c_str(), 0755) == 0) return absl::OkStatus();
  } else if (errno == EEXIST) {
    struct stat link;
    struct stat info;
    if (::lstat(root.c_str(), &link) == 0 && ::stat(root.c_str(), &info) == 0) {
      const auto trusted = [](uid_t uid) { return uid == 0 || uid == ::geteuid(); };
      if (trusted(link.st_uid) && trusted(info.st_uid) && (info.st_mode & S_IWOTH) == 0)
        return absl::OkStatus();
      return absl::FailedPreconditionError(absl::StrCat(
          "the folder of compile caches, ", root,
          ", is another user's, or anybody may write there: remove it, or name another with "
          "[worker] cache_directory"));
    }
  }
  return absl::ErrnoToStatus(errno, absl::StrCat("creating ", root));
}

}  // namespace

bool IsTenantUid(uid_t uid) { return uid >= kFirstTenantUid && uid <= kLastTenantUid; }

absl::StatusOr<WorkerUsers> WorkerUsers::Create(const Config& config) {
  WorkerUsers users;
  users.cache_root_ = config.worker.cache_directory;
  users.domain_root_ = OwnDomainRoot(config.socket);
  if (!os::IsPrivileged()) {
    if (config.worker.user.has_value()) {
      Log(LogLevel::kWarning, "broker",
          "[worker] user is ignored: only a daemon that runs as root, with users to change to, can",
          {{"user", *config.worker.user}});
    }
    return users;
  }
  const bool has_default_root = IsDirectory(kDefaultCacheRoot);
  const absl::StatusOr<os::UserIdentity> named =
      os::LookUpUser(config.worker.user.value_or(kServiceUser));
  if (config.worker.user.has_value()) {
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
    users.cache_root_ =
        has_default_root ? kDefaultCacheRoot : StateFolderOf(config.socket) + "/cache";
  }
  return users;
}

std::string WorkerUsers::Describe() const {
  if (own_uids_) return "one for each identity";
  return service_.has_value() ? service_->name : "";
}

std::string WorkerUsers::CacheFolderOf(const std::string& identity_name) const {
  const std::string& root =
      cache_root_.empty() && IsDomain(identity_name) ? domain_root_ : cache_root_;
  return root.empty() ? "" : absl::StrCat(root, "/", PathComponent(identity_name));
}

absl::StatusOr<WorkerUsers::Tenant> WorkerUsers::For(const std::string& identity_name) {
  Tenant tenant{service_, CacheFolderOf(identity_name)};
  if (tenant.cache_directory.empty()) return tenant;
  if (absl::Status made = MakeRoot(fs::path(tenant.cache_directory).parent_path()); !made.ok())
    return made;
  const bool is_new =
      own_uids_ && !identity_name.empty() && !tenants_.contains(tenant.cache_directory);
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
  absl::Status made = MakeDirectoryOf(tenant.cache_directory, owner, group);
  // For the next daemon: it was used now.
  if (own_uids_ && made.ok())
    ::utimensat(AT_FDCWD, tenant.cache_directory.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
  if (is_new) NoteRecord();  // By us.
  if (!made.ok()) {
    if (own_uids_) return made;
    Log(LogLevel::kWarning, "broker", "no compile cache for this session",
        {{"reason", std::string(made.message())}});
    tenant.cache_directory.clear();
  }
  return tenant;
}

absl::StatusOr<uid_t> WorkerUsers::TenantUid(const std::string& directory) {
  auto known = tenants_.find(directory);
  if (known == tenants_.end() && RecordChanged()) {
    ReadRecord();
    known = tenants_.find(directory);
  }
  if (known == tenants_.end()) {
    MakeRoom(directory.substr(0, directory.find('-', cache_root_.size())));
    const uid_t uid = FreeUid();
    if (uid > kLastTenantUid)
      return absl::ResourceExhaustedError("no user id is left for a new identity");
    highest_ = std::max(highest_, uid);
    known = tenants_.emplace(directory, Known{uid, 0}).first;
  }
  known->second.last_used_ns = NowNs();
  return known->second.uid;
}

// A directory's own time of change says when it was used last: For sees to that, and its owner
// cannot set it.
void WorkerUsers::ReadRecord() {
  NoteRecord();
  // Only workers that still run use the directories of containers of an earlier broker.
  const std::optional<std::set<uid_t>> busy =
      std::exchange(read_record_, true) ? std::nullopt : UidsOfProcesses();
  std::vector<std::string> gone;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(cache_root_, error)) {
    struct stat info;
    const std::string path = entry.path();
    if (::lstat(path.c_str(), &info) != 0 || !IsTenantUid(info.st_uid)) continue;
    highest_ = std::max(highest_, info.st_uid);
    if (entry.path().filename().string().starts_with(kGone)) {
      gone.push_back(path);
    } else if (S_ISDIR(info.st_mode)) {
      if (busy.has_value() && IsContainers(entry.path().filename()) &&
          !busy->contains(info.st_uid)) {
        std::string away = absl::StrCat(cache_root_, "/", kGone, info.st_uid);
        if (::rename(path.c_str(), away.c_str()) == 0) {
          gone.push_back(std::move(away));
          continue;
        }
      }
      Known& known = tenants_[path];
      known = {info.st_uid, std::max(known.last_used_ns, Nanoseconds(info.st_ctim))};
    }
  }
  RemoveElsewhere(std::move(gone));
}

// Another daemon with the same directory, or an operator, may have changed it.
bool WorkerUsers::RecordChanged() const { return StateOf(cache_root_) != record_; }

void WorkerUsers::NoteRecord() { record_ = StateOf(cache_root_); }

void WorkerUsers::MakeRoom(const std::string& kind) {
  std::vector<std::pair<int64_t, std::string>> oldest;
  size_t count = 0;
  for (auto it = tenants_.lower_bound(kind + "-");
       it != tenants_.end() && it->first.starts_with(kind + "-"); ++it, ++count) {
    // The highest id's directory is the record of which ones were given out.
    if (it->second.uid != highest_) oldest.emplace_back(it->second.last_used_ns, it->first);
  }
  if (count < kMostIdentities) return;
  const std::optional<std::set<uid_t>> busy = UidsOfProcesses();
  if (!busy.has_value()) return;
  std::sort(oldest.begin(), oldest.end());
  std::vector<std::string> gone;
  for (const auto& [last_used, directory] : oldest) {
    if (gone.size() == kForgottenAtOnce) break;
    const auto known = tenants_.find(directory);
    if (busy->contains(known->second.uid)) continue;
    std::string away = absl::StrCat(cache_root_, "/", kGone, known->second.uid);
    if (::rename(directory.c_str(), away.c_str()) != 0 && errno != ENOENT) continue;
    gone.push_back(std::move(away));
    tenants_.erase(known);
  }
  Log(LogLevel::kInfo, "broker", "identities forgotten, with their compile caches",
      {{"kind", kind.substr(kind.rfind('/') + 1)}, {"count", gone.size()}, {"of", count}});
  RemoveElsewhere(std::move(gone));
}

// The one above all that were given out, also by earlier daemons; else one that is free again.
uid_t WorkerUsers::FreeUid() const {
  if (highest_ < kLastTenantUid) return highest_ + 1;
  std::set<uid_t> taken;
  for (const auto& [directory, known] : tenants_) taken.insert(known.uid);
  uid_t uid = kFirstTenantUid + 1;
  while (taken.contains(uid)) ++uid;
  return uid;
}

}  // namespace sluice::broker
