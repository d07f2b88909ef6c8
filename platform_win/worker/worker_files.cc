// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/worker_files.h"

#include "broker/os/file_access.h"

namespace sluice::worker {

// A worker's token, which it got at its start, decides which files it reaches.
absl::Status ConfineWorkerFiles(const std::vector<std::string>&, const std::vector<std::string>&,
                                bool) {
  return os::ConfineFiles({});
}

absl::Status EnterWorkersRoot(const std::vector<std::string>&, const std::vector<std::string>&) {
  return absl::UnavailableError("Windows has no mount namespaces");
}

void LeaveDaemonsFolder() {}

std::string CompileCacheFolder() { return ""; }

// On Windows workers run as the daemon's user and use its own caches.
std::string UnusableFolder() { return ""; }

}  // namespace sluice::worker
