// SPDX-License-Identifier: Apache-2.0
// The worker's end of a shared texture (broker/os/texture_sharing.h): opens what lies behind the
// descriptor on an adapter, for its keyed mutex. kUnimplemented: this system has none. Thread-safe.
#pragma once

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "broker/os/texture_sharing.h"

namespace sluice::worker {

using KeyedMutexOpener = std::function<absl::StatusOr<std::shared_ptr<os::KeyedMutex>>(
    int fd, const os::AdapterId& adapter)>;

absl::StatusOr<std::shared_ptr<os::KeyedMutex>> OpenKeyedMutex(int fd,
                                                               const os::AdapterId& adapter);

}  // namespace sluice::worker
