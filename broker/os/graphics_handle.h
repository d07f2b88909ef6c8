// SPDX-License-Identifier: Apache-2.0
//
// Handles of graphics objects, such as the NT handle of a Direct3D texture, as descriptors: they
// travel as all others do. Only the driver that opens one can tell its object. One from a process
// with fewer rights (the allocator) is accepted only if its type is the graphics kernel's for
// shared resources and fences. The process that may duplicate handles into the other one sends
// them.
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
