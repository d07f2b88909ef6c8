// SPDX-License-Identifier: Apache-2.0
#include "daemon/helpers/helper_files.h"

namespace sluice::os {

// What a helper reaches was decided by its token, when it was started.
absl::Status ConfineGatewayFiles(const std::vector<uint16_t>&) { return absl::OkStatus(); }
absl::Status ConfineAllocatorFiles(const std::vector<std::string>&) { return absl::OkStatus(); }

}  // namespace sluice::os
