// SPDX-License-Identifier: Apache-2.0
#include "broker/vendor_folder.h"

namespace sluice::broker {

// On Windows the loader reads the registry of the whole machine alone: nothing can be hidden from
// it. Sluice's own driver offers nothing in a worker, by SLUICE_WORKER.
absl::StatusOr<std::string> FillVendorFolder(const std::string&,
                                             const std::map<std::string, std::string>&) {
  return std::string();
}

void RemoveVendorFolder(const std::string&) {}

}  // namespace sluice::broker
