// SPDX-License-Identifier: Apache-2.0
//
// The drivers that workers may load: a folder among the daemon's own files with links to every .icd
// file of the host's but those of Sluice's own, for a worker that loaded this daemon's driver would
// be its own client. One for all workers, so that nothing is left behind by one that is killed.
// Event loop thread only.
#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"

namespace sluice::broker {

// Fills the folder from the one that OCL_ICD_VENDORS names (in `worker_environment`, else in our
// own), by default /etc/OpenCL/vendors, also if our own names Sluice's driver alone. Returns its
// path, which ends with a slash, or nothing if there is no such folder to hide anything of. To be
// called again when drivers may have come or gone.
absl::StatusOr<std::string> FillVendorFolder(
    const std::string& socket_path, const std::map<std::string, std::string>& worker_environment);

void RemoveVendorFolder(const std::string& socket_path);

}  // namespace sluice::broker
