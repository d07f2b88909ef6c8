// SPDX-License-Identifier: Apache-2.0
//
// Handles of graphics objects, such as the NT handle of a Direct3D texture, as descriptors: they
// travel as all others do. What one refers to, only the driver that opens it can tell. From a
// process with less power (the allocator) one is taken only if its type is the graphics kernel's
// for shared resources and fences; who may duplicate into the other gives it one.
//
// On Linux the handle is the descriptor itself. All functions are thread-safe.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "broker/os/scoped_handle.h"

namespace sluice::os {

// Takes the handle over.
UniqueFd AdoptGraphicsHandle(uintptr_t handle);

// The handle as drivers want it; it stays the descriptor's. kInvalidArgument: the descriptor is
// something else, or none.
absl::StatusOr<uintptr_t> GraphicsHandleOf(int fd);

}  // namespace sluice::os
