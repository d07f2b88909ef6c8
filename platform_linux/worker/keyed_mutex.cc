// SPDX-License-Identifier: Apache-2.0
#include "broker/os/texture_sharing.h"

namespace sluice::os {

absl::StatusOr<std::shared_ptr<KeyedMutex>> OpenKeyedMutex(int, const AdapterId&) {
  return absl::UnimplementedError("keyed mutexes are Direct3D's, which this system has not");
}

}  // namespace sluice::os
