// SPDX-License-Identifier: Apache-2.0
// The end of one session in a process that goes on: what a worker of its own leaves to the kernel is
// taken back here, as a client would that releases everything. In this order:
//
//   1. nothing is sent or begun any more; what waits for the client fails: transfers, user events
//   2. what was given to the driver ends, or the bound passes: then the pool must end
//   3. the objects go, and with them what the driver holds of the session's memory
//   4. no callback of the driver's can come any more: the session may be destroyed
#pragma once

#include "absl/time/time.h"
#include "daemon/worker/session.h"

namespace sluice::worker {

// On the session's thread, after its command loop. False: something has not ended within the bound,
// and nothing of the session may be destroyed. A build that is under way is not waited for, and
// holds the session until builds().stopped().
bool DrainSession(Session& session, absl::Duration bound);

}  // namespace sluice::worker
