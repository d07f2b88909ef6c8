// SPDX-License-Identifier: Apache-2.0
//
// The drivers that workers may load: a folder among the daemon's own files, with links to the
// host's .icd files. Sluice's own are left out, for a worker that loaded this daemon's driver would
// be its own client. All workers share the folder, so that a killed one leaves nothing behind.
// Event loop thread only.
#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"

namespace sluice::broker {

// Fills the folder from the one that OCL_ICD_VENDORS names in `worker_environment`, else in our own
// environment. Takes /etc/OpenCL/vendors if neither does, or if ours names Sluice's driver alone.
// Returns its path, which ends with a slash; "" if there is no such folder, so that nothing is to
// be hidden. Call again when drivers may have come or gone.
absl::StatusOr<std::string> FillVendorFolder(
    const std::string& socket_path, const std::map<std::string, std::string>& worker_environment);

void RemoveVendorFolder(const std::string& socket_path);

}  // namespace sluice::broker
