// SPDX-License-Identifier: Apache-2.0
//
// Starts sluice-worker, for a session or as a probe, with the same confinement: an unprivileged
// user where the broker is root, a scrubbed environment, exactly the descriptors that are given.
//
// Owner: the Broker. Loop thread only. Trusts the configuration; nothing of a client reaches argv
// or the environment.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "broker/children/worker_users.h"
#include "broker/config/config.h"
#include "broker/os/process.h"

namespace sluice::broker {

class WorkerLauncher {
 public:
  // Finds the executable and the users.
  static absl::StatusOr<WorkerLauncher> Create(const Config& config);

  // `identity_name` chooses user and compile cache; "" for the probe. `output` and `control_group`:
  // as SpawnOptions'.
  absl::StatusOr<os::ChildProcess> Launch(std::vector<std::string> arguments,
                                          std::vector<std::pair<int, int>> descriptors,
                                          const std::string& identity_name,
                                          int output = os::kParentsStderr,
                                          int control_group = -1) const;

  const WorkerUsers& users() const { return *users_; }
  // Says which of the host's files a process with drivers in it may reach: for workers, and the
  // allocator.
  const std::vector<std::string>& confinement_arguments() const { return confinement_arguments_; }

 private:
  WorkerLauncher() = default;

  std::vector<std::string> Environment(const WorkerUsers::Tenant& tenant) const;
  static std::string RecordsDirectory(const WorkerUsers::Tenant& tenant,
                                      const std::string& identity_name);

  std::string path_;
  std::unique_ptr<WorkerUsers> users_;
  uint64_t data_bytes_ = 0;
  uint64_t cache_bytes_ = 0;
  std::vector<std::string> confinement_arguments_;
  std::vector<std::string> common_arguments_;  // These too.
  std::map<std::string, std::string> extra_environment_;
};

}  // namespace sluice::broker
