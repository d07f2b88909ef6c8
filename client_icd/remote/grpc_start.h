// SPDX-License-Identifier: Apache-2.0
//
// gRPC's first use in a process. Without the descriptors that it needs it aborts, and for threads
// that it does not get it waits for ever, so both are asked for beforehand. A thread of the
// application's may take them meanwhile: that cannot be kept from it. In libsluice_remote.so and
// libsluice.so, each for itself. Thread-safe.
#pragma once

#include "absl/status/status.h"

namespace sluice::client {

// Makes gRPC ready, once: silent, and never taken down again, since its threads may still run while
// the process ends. kResourceExhausted: this process can have too few descriptors or threads, which
// may be another time.
absl::Status StartGrpc();

// True if gRPC may write on stderr, which is the application's: with GRPC_VERBOSITY, or
// SLUICE_LOG=debug.
bool LogsGrpc();

// Before what makes gRPC start threads of its own beside those: callbacks.
absl::Status CheckRoomForGrpcThreads();

}  // namespace sluice::client
