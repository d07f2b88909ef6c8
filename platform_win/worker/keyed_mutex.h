// SPDX-License-Identifier: Apache-2.0
//
// The other end of a shared texture (broker/os/texture_sharing.h) on an existing device, which a
// test may have made up. Calls of one mutex come one at a time.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "broker/os/com_ptr.h"
#include "broker/os/texture_sharing.h"

struct ID3D11Device1;

namespace sluice::worker {

// As OpenKeyedMutex. The mutex keeps the texture, which keeps the device.
absl::StatusOr<std::shared_ptr<os::KeyedMutex>> OpenKeyedMutexOn(ID3D11Device1* device, int fd);

}  // namespace sluice::worker
