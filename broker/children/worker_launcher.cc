// SPDX-License-Identifier: Apache-2.0
#include "broker/children/worker_launcher.h"

#include <string_view>

#include "absl/strings/str_cat.h"
#include "broker/config/sandbox_layers.h"
#include "broker/os/peer_identity.h"
#include "broker/os/this_process.h"
#include "broker/vendor_folder.h"

namespace sluice::broker {
namespace {

// The variables of the broker's environment that a worker gets; all others are dropped. OCL_ICD_
// lets the operator choose the vendors' drivers, VK_ those of shared device memory, POCL_ tunes the
// embedded default.
constexpr std::string_view kPassedNames[] = {"PATH",
                                             "LANG",
                                             "LC_ALL",
                                             "TMPDIR",
                                             "LD_LIBRARY_PATH",
                                             "VK_DRIVER_FILES",
                                             "VK_ICD_FILENAMES",
                                             "ASAN_OPTIONS",
                                             "UBSAN_OPTIONS",
                                             "TSAN_OPTIONS",
                                             "LSAN_OPTIONS"};
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
  absl::StatusOr<std::string> path = os::FindHelperExecutable("sluice-worker");
  if (!path.ok()) return path.status();
  launcher.path_ = *std::move(path);
  absl::StatusOr<WorkerUsers> users = WorkerUsers::Create(config);
  if (!users.ok()) return users.status();
  launcher.users_ = std::make_unique<WorkerUsers>(*std::move(users));
  launcher.extra_environment_ = config.worker.environment;
  absl::StatusOr<std::string> vendors = FillVendorFolder(config.socket, config.worker.environment);
  if (!vendors.ok()) return vendors.status();
  if (!vendors->empty()) launcher.extra_environment_["OCL_ICD_VENDORS"] = *vendors;
  launcher.data_bytes_ = config.limits.worker_memory_bytes;
  launcher.cache_bytes_ = config.worker.cache_bytes;
  launcher.confinement_arguments_.push_back(
      absl::StrCat("--confine-files=", config.worker.confine_files ? 1 : 0));
  launcher.confinement_arguments_.push_back(
      absl::StrCat("--system-calls=", std::string(os::CallRuleName(config.worker.system_calls))));
  for (std::string& argument : SandboxArguments(config))
    launcher.confinement_arguments_.push_back(std::move(argument));
  for (const std::string& path : config.worker.readable)
    launcher.confinement_arguments_.push_back(absl::StrCat("--readable=", path));
  for (const std::string& path : config.worker.executable)
    launcher.confinement_arguments_.push_back(absl::StrCat("--executable=", path));
  launcher.common_arguments_ = launcher.confinement_arguments_;
  launcher.common_arguments_.push_back(
      absl::StrCat("--log-level=", std::string(LogLevelName(config.log_level))));
  for (const std::string& pattern : config.device_patterns) {
    launcher.common_arguments_.push_back(absl::StrCat("--devices=", pattern));
  }
  return launcher;
}

// The directory for records that a worker will trust in a later session; "" unless it is this
// identity's alone.
std::string WorkerLauncher::RecordsDirectory(const WorkerUsers::Tenant& tenant,
                                             const std::string& identity_name) {
  std::string cache = tenant.cache_directory;
  // Without a cache per identity there is the user's own, which serves that user only.
  const bool is_own = !tenant.user.has_value() && identity_name == os::UserName(os::OwnUser());
  if (cache.empty() && is_own) {
    const std::string home = os::EnvironmentVariable("HOME").value_or("");
    const std::string xdg = os::EnvironmentVariable("XDG_CACHE_HOME").value_or("");
    if (xdg.starts_with('/')) {
      cache = xdg;
    } else if (home.starts_with('/')) {
      cache = absl::StrCat(home, "/.cache");
    }
  }
  return cache.empty() ? "" : absl::StrCat(cache, "/sluice-arguments");
}

std::vector<std::string> WorkerLauncher::Environment(const WorkerUsers::Tenant& tenant) const {
  std::map<std::string, std::string> values;
  for (const std::string& entry : os::OwnEnvironment()) {
    const std::string_view text(entry);
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos || !IsPassed(text.substr(0, equals))) continue;
    values[std::string(text.substr(0, equals))] = std::string(text.substr(equals + 1));
  }
  if (tenant.user.has_value()) {
    values["HOME"] = tenant.user->home;
    values["USER"] = tenant.user->name;
  } else {
    for (const char* name : {"HOME", "XDG_CACHE_HOME"}) {
      if (const auto value = os::EnvironmentVariable(name)) values[name] = *value;
    }
  }
  if (const std::string& cache = tenant.cache_directory; !cache.empty()) {
    values["XDG_CACHE_HOME"] = cache;
    values["CUDA_CACHE_PATH"] = cache + "/nv";  // NVIDIA's driver knows no XDG_CACHE_HOME.
    values["TMPDIR"] = cache + "/tmp";          // Made by the worker, which owns the folder.
  }
  for (const auto& [name, value] : extra_environment_) values[name] = value;
  values["SLUICE_WORKER"] =
      "1";  // By which Sluice's own ICD, if it is loaded here, offers nothing.
  std::vector<std::string> environment;
  environment.reserve(values.size());
  for (const auto& [name, value] : values) environment.push_back(absl::StrCat(name, "=", value));
  return environment;
}

absl::StatusOr<os::ChildProcess> WorkerLauncher::Launch(
    std::vector<std::string> arguments, std::vector<std::pair<int, int>> descriptors,
    const std::string& identity_name, int output, int control_group) const {
  absl::StatusOr<WorkerUsers::Tenant> tenant = users_->For(identity_name);
  if (!tenant.ok()) return tenant.status();
  os::SpawnOptions options;
  options.path = path_;
  options.arguments = std::move(arguments);
  options.arguments.insert(options.arguments.end(), common_arguments_.begin(),
                           common_arguments_.end());
  options.descriptors = std::move(descriptors);
  options.environment = Environment(*tenant);
  options.output = output;
  options.control_group = control_group;
  if (!identity_name.empty()) {
    options.sandbox.data_bytes = data_bytes_;
    if (const std::string records = RecordsDirectory(*tenant, identity_name); !records.empty())
      options.arguments.push_back(absl::StrCat("--records=", records));
    // Not in a user's own daemon, whose cache that user's other programs share.
    if (!tenant->cache_directory.empty())
      options.arguments.push_back(absl::StrCat("--limit-cache-bytes=", cache_bytes_));
  }
  options.sandbox.stays_in_session = true;
  options.sandbox.user = std::move(tenant->user);
  return os::Spawn(options);
}

}  // namespace sluice::broker
