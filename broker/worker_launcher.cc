// SPDX-License-Identifier: Apache-2.0
#include "broker/worker_launcher.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "broker/base/log.h"

extern char** environ;

namespace sluice {
namespace {

constexpr char kDefaultWorkerUser[] = "sluice";
constexpr char kDefaultCacheDirectory[] = "/var/cache/sluice";

// What a worker may see of the broker's environment; all else is dropped. OCL_ICD_ lets the
// operator choose the vendors' drivers, POCL_ tunes the embedded default.
constexpr std::string_view kPassedNames[] = {
    "PATH",         "LANG",          "LC_ALL",       "TMPDIR",      "LD_LIBRARY_PATH",
    "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "LSAN_OPTIONS"};
constexpr std::string_view kPassedPrefixes[] = {"OCL_ICD_", "POCL_", "SLUICE_WORKER_"};

bool IsPassed(std::string_view name) {
  for (const std::string_view passed : kPassedNames) {
    if (name == passed) return true;
  }
  for (const std::string_view prefix : kPassedPrefixes) {
    if (name.starts_with(prefix)) return true;
  }
  return false;
}

bool IsDirectory(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

// An identity as one path component, such as "uid-1000": a certificate's subject may hold anything.
std::string PathComponent(const std::string& identity_name) {
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
  return component.substr(0, 200);
}

}  // namespace

absl::StatusOr<std::optional<UserIdentity>> ResolveWorkerUser(const Config& config) {
  if (::geteuid() != 0) {
    if (config.worker_user.has_value()) {
      Log(LogLevel::kWarning, "broker",
          "[worker] user is ignored: only a daemon that runs as root can change users",
          {{"user", *config.worker_user}});
    }
    return std::optional<UserIdentity>();
  }
  const absl::StatusOr<UserIdentity> user =
      LookUpUser(config.worker_user.value_or(kDefaultWorkerUser));
  if (user.ok()) return std::optional<UserIdentity>(*user);
  if (config.worker_user.has_value()) return user.status();
  Log(LogLevel::kWarning, "broker",
      "workers run as root, since this machine has no user \"sluice\": create it "
      "(systemd-sysusers with deploy/linux/sluice.sysusers) or set \"user\" in [worker]");
  return std::optional<UserIdentity>();
}

absl::StatusOr<WorkerLauncher> WorkerLauncher::Create(const Config& config) {
  WorkerLauncher launcher;
  absl::StatusOr<std::string> path = FindHelperExecutable("sluice-worker");
  if (!path.ok()) return path.status();
  launcher.path_ = *std::move(path);
  absl::StatusOr<std::optional<UserIdentity>> user = ResolveWorkerUser(config);
  if (!user.ok()) return user.status();
  launcher.user_ = *std::move(user);
  launcher.cache_directory_ = config.cache_directory;
  if (launcher.cache_directory_.empty() && launcher.user_.has_value() &&
      IsDirectory(kDefaultCacheDirectory)) {
    launcher.cache_directory_ = kDefaultCacheDirectory;
  }
  launcher.extra_environment_ = config.worker_environment;
  launcher.common_arguments_.push_back(
      absl::StrCat("--log-level=", std::string(LogLevelName(config.log_level))));
  for (const std::string& pattern : config.device_patterns) {
    launcher.common_arguments_.push_back(absl::StrCat("--devices=", pattern));
  }
  return launcher;
}

std::string WorkerLauncher::CacheDirectoryFor(const std::string& identity_name) const {
  if (cache_directory_.empty()) return "";
  const std::string name = identity_name.empty() ? "probe" : PathComponent(identity_name);
  std::string path = absl::StrCat(cache_directory_, "/", name);
  // The parent belongs to the broker's user, so that no worker can put a link there.
  if (::mkdir(path.c_str(), 0700) == 0) {
    if (user_.has_value() && ::lchown(path.c_str(), user_->uid, user_->gid) == 0) return path;
    if (!user_.has_value()) return path;
  } else if (errno == EEXIST) {
    return path;
  }
  Log(LogLevel::kWarning, "broker", "no compile cache for this session",
      {{"directory", path}, {"reason", std::strerror(errno)}});
  return "";
}

std::vector<std::string> WorkerLauncher::Environment(const std::string& identity_name) const {
  std::map<std::string, std::string> values;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos || !IsPassed(text.substr(0, equals))) continue;
    values[std::string(text.substr(0, equals))] = std::string(text.substr(equals + 1));
  }
  if (user_.has_value()) {
    values["HOME"] = user_->home;
    values["USER"] = user_->name;
  } else {
    for (const char* name : {"HOME", "XDG_CACHE_HOME"}) {
      if (const char* value = std::getenv(name); value != nullptr) values[name] = value;
    }
  }
  if (const std::string cache = CacheDirectoryFor(identity_name); !cache.empty()) {
    values["XDG_CACHE_HOME"] = cache;
  }
  for (const auto& [name, value] : extra_environment_) values[name] = value;
  values["SLUICE_WORKER"] =
      "1";  // By which Sluice's own ICD, if it is loaded here, offers nothing.
  std::vector<std::string> environment;
  environment.reserve(values.size());
  for (const auto& [name, value] : values) environment.push_back(absl::StrCat(name, "=", value));
  return environment;
}

absl::StatusOr<ChildProcess> WorkerLauncher::Launch(std::vector<std::string> arguments,
                                                    std::vector<std::pair<int, int>> descriptors,
                                                    const std::string& identity_name) const {
  SpawnOptions options;
  options.path = path_;
  options.arguments = std::move(arguments);
  options.arguments.insert(options.arguments.end(), common_arguments_.begin(),
                           common_arguments_.end());
  options.descriptors = std::move(descriptors);
  options.environment = Environment(identity_name);
  options.sandbox.user = user_;
  return Spawn(options);
}

}  // namespace sluice
