// SPDX-License-Identifier: Apache-2.0
//
// The broker's children, worker, gateway and allocator, ask the system for these things for their
// own process. Thread-safe.
#pragma once

namespace sluice::os {

// Other processes of the same user must not look into this one: into a worker, which has a tenant's
// data, or a gateway, which has the private key. Call before other threads are started.
void HideFromOthers();
// Nor take over the threads that it starts from now on, where threads are things of their own to
// the system (Windows). Not for who opens by name what it has made itself: nobody could.
void HideThreadsFromOthers();

// Without destructors, which in a driver may wait for kernels that never end, and in gRPC for
// threads.
[[noreturn]] void EndProcessNow(int code);

}  // namespace sluice::os
