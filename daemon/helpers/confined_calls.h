// SPDX-License-Identifier: Apache-2.0
//
// Which system calls a helper of the broker's can make: the ones on its own list and no others,
// with the arguments that it needs (seccomp, by libseccomp). Its children inherit that. A kernel of
// a tenant's is native code on a CPU device, and a gateway hears strangers. Neither gets sockets of
// its own, namespaces, keys, shared memory that outlives it, or a hold on other processes.
//
// Each confines itself once, by main, after its files (helper_files.h, worker_files.h) and before
// it loads a driver or starts a thread. On Windows token and job do this from the start, and these
// functions do nothing.
#pragma once

#include "absl/status/status.h"
#include "broker/os/sandbox.h"

namespace sluice::os {

enum class Helper { kWorker, kAllocator, kGateway };

absl::Status ConfineCalls(Helper helper, CallRule rule);

// For a gateway that listens: no thread of it makes another socket, binds or connects one.
absl::Status MakeNoMoreSockets(CallRule rule);

}  // namespace sluice::os
