// SPDX-License-Identifier: Apache-2.0
#include "daemon/helpers/helper_files.h"

namespace sluice::os {

// A helper's token, which it got at its start, decides which files it reaches.
absl::Status ConfineGatewayFiles(const std::vector<uint16_t>&, bool) { return absl::OkStatus(); }
absl::Status ConfineAllocatorFiles(const std::vector<std::string>&, bool) {
  return absl::OkStatus();
}

}  // namespace sluice::os
