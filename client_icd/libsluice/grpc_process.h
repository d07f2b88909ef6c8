// SPDX-License-Identifier: Apache-2.0
//
// Finds out if gRPC can be used in this process. It does not survive a fork: a child shares its
// parent's epoll set, so that what the child adds there is told to the parent, with addresses of
// the child. Nor can it be in a second namespace of the linker (dlmopen). And it aborts a process
// whose environment it does not understand. Thread-safe.
#pragma once

#include "absl/status/status.h"

namespace sluice::client {

// From OK on, children of this process get an error; so do those of a process in which somebody
// else had gRPC running when it forked. The message says why not. Before each first use of gRPC.
absl::Status ClaimGrpc();

}  // namespace sluice::client
