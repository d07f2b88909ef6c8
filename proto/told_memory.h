// SPDX-License-Identifier: Apache-2.0
//
// The sizes of memory that devices report to a client that may have less of it (MemoryIn).
// Thread-safe.
#pragma once

#include <cstdint>

#include "proto/snapshot.pb.h"

namespace sluice::wire {

// Both of each device: programs size their buffers by these (section 4.2, table of device queries).
void NarrowMemory(uint64_t most, v1::PlatformSnapshot* snapshot);

}  // namespace sluice::wire
