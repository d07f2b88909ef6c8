// SPDX-License-Identifier: Apache-2.0
#include "client_icd/libsluice/resource_helper.h"

namespace sluice::client {

// Never asked for: processes do not fork here, and gRPC reads no variable that it aborts for.
absl::StatusOr<std::unique_ptr<ResourceHelper>> ResourceHelper::Start(os::UniqueFd,
                                                                      const absl::Status& why) {
  return absl::UnimplementedError(why.message());
}

}  // namespace sluice::client
