// SPDX-License-Identifier: Apache-2.0
#include "client_icd/libsluice/resource_helper.h"

namespace sluice {

// Never asked for: processes do not fork here.
absl::StatusOr<std::unique_ptr<ResourceHelper>> ResourceHelper::Start(UniqueFd) {
  return absl::UnimplementedError("gRPC cannot be used in this process");
}

}  // namespace sluice
