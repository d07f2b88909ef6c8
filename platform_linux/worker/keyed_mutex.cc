// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/memory/keyed_mutex.h"

namespace sluice::worker {

absl::StatusOr<std::shared_ptr<os::KeyedMutex>> OpenKeyedMutex(int, const os::AdapterId&) {
  return absl::UnimplementedError("keyed mutexes are Direct3D's, which this system has not");
}

}  // namespace sluice::worker
