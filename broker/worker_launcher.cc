// SPDX-License-Identifier: Apache-2.0
#include "broker/worker_launcher.h"

#include <cstdlib>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "broker/vendor_folder.h"

extern char** environ;

namespace sluice {
namespace {

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

}  // namespace

absl::StatusOr<WorkerLauncher> WorkerLauncher::Create(const Config& config) {
  WorkerLauncher launcher;
  absl::StatusOr<std::string> path = FindHelperExecutable("sluice-worker");
  if (!path.ok()) return path.status();
  launcher.path_ = *std::move(path);
  absl::StatusOr<WorkerUsers> users = WorkerUsers::Create(config);
  if (!users.ok()) return users.status();
  launcher.users_ = std::make_unique<WorkerUsers>(*std::move(users));
  launcher.extra_environment_ = config.worker_environment;
  absl::StatusOr<std::string> vendors = FillVendorFolder(config.socket, config.worker_environment);
  if (!vendors.ok()) return vendors.status();
  if (!vendors->empty()) launcher.extra_environment_["OCL_ICD_VENDORS"] = *vendors;
  launcher.common_arguments_.push_back(
      absl::StrCat("--log-level=", std::string(LogLevelName(config.log_level))));
  for (const std::string& pattern : config.device_patterns) {
    launcher.common_arguments_.push_back(absl::StrCat("--devices=", pattern));
  }
  return launcher;
}

std::vector<std::string> WorkerLauncher::Environment(const WorkerUsers::Tenant& tenant) const {
  std::map<std::string, std::string> values;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos || !IsPassed(text.substr(0, equals))) continue;
    values[std::string(text.substr(0, equals))] = std::string(text.substr(equals + 1));
  }
  if (tenant.user.has_value()) {
    values["HOME"] = tenant.user->home;
    values["USER"] = tenant.user->name;
  } else {
    for (const char* name : {"HOME", "XDG_CACHE_HOME"}) {
      if (const char* value = std::getenv(name); value != nullptr) values[name] = value;
    }
  }
  if (!tenant.cache_directory.empty()) values["XDG_CACHE_HOME"] = tenant.cache_directory;
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
  absl::StatusOr<WorkerUsers::Tenant> tenant = users_->For(identity_name);
  if (!tenant.ok()) return tenant.status();
  SpawnOptions options;
  options.path = path_;
  options.arguments = std::move(arguments);
  options.arguments.insert(options.arguments.end(), common_arguments_.begin(),
                           common_arguments_.end());
  options.descriptors = std::move(descriptors);
  options.environment = Environment(*tenant);
  options.sandbox.user = std::move(tenant->user);
  return Spawn(options);
}

}  // namespace sluice
