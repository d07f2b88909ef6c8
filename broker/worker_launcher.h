// SPDX-License-Identifier: Apache-2.0
//
// Starts sluice-worker, for a session or as a probe, with the same confinement: an unprivileged
// user where the broker is root, a scrubbed environment, exactly the descriptors that are given.
//
// Owner: the Broker. Loop thread only. Trusts the configuration; nothing of a client reaches argv
// or the environment.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "broker/config.h"
#include "broker/os/process.h"

namespace sluice {

class WorkerLauncher {
 public:
  // Finds the executable and the user. Warns if workers will run with the broker's own rights.
  static absl::StatusOr<WorkerLauncher> Create(const Config& config);

  // `identity_name` chooses the compile cache; "" for the probe, which has one of its own.
  absl::StatusOr<ChildProcess> Launch(std::vector<std::string> arguments,
                                      std::vector<std::pair<int, int>> descriptors,
                                      const std::string& identity_name) const;

  // The user that children run as; nothing if they stay with the broker's.
  const std::optional<UserIdentity>& user() const { return user_; }

 private:
  WorkerLauncher() = default;

  std::vector<std::string> Environment(const std::string& identity_name) const;
  std::string CacheDirectoryFor(const std::string& identity_name) const;

  std::string path_;
  std::optional<UserIdentity> user_;
  std::string cache_directory_;
  std::vector<std::string> common_arguments_;
  std::map<std::string, std::string> extra_environment_;
};

// Resolves [worker] user for this process; nothing if it does not change.
absl::StatusOr<std::optional<UserIdentity>> ResolveWorkerUser(const Config& config);

}  // namespace sluice
