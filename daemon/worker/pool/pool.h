// SPDX-License-Identifier: Apache-2.0
// A worker for several sessions of one isolation domain and one account (broker/children/pools.h).
// Each has its client's handle channel, its control socket, its rings, its objects and a thread of
// its own; what they share is in pool_parts.h. The broker sends the two descriptors of each with an
// AddSession on the pool's control socket; when that ends, the pool ends with its last session.
//
//   AddSession -> [serving] -- client gone, Terminate, violation --> [ending] --> destroyed
//                                                                        |
//                     commands of it that do not end within the bound ---+--> the pool ends,
//                     a build that takes too long, a fault of the driver's    and tells the others
//
// Main thread only.
#pragma once

#include "absl/status/status.h"
#include "daemon/worker/worker_options.h"

namespace sluice::worker {

// Serves until the process ends. Returns only what kept it from beginning.
absl::Status RunPool(const WorkerOptions& options, int control);

}  // namespace sluice::worker
