// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/worker_files.h"

#include "broker/os/file_access.h"

namespace sluice::worker {

// What a worker reaches was decided by its token, when it was started.
absl::Status ConfineWorkerFiles(const std::vector<std::string>&, const std::vector<std::string>&) {
  return os::ConfineFiles({});
}

void LeaveDaemonsFolder() {}

std::string CompileCacheFolder() { return ""; }

// Workers run as the daemon's user there, whose caches are its own.
std::string UnusableFolder() { return ""; }

}  // namespace sluice::worker
