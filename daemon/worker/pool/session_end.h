// SPDX-License-Identifier: Apache-2.0
// The end of one session in a process that goes on: what a worker of its own leaves to the kernel is
// taken back here, as a client would that releases everything. In this order:
//
//   1. nothing is sent or begun any more; what waits for the client fails: transfers, user events
//   2. what was given to the driver ends, or the bound passes: then the pool must end
//   3. the objects go, and with them what the driver holds of the session's memory
//   4. the driver holds nothing of the session's any more: the session may be destroyed
#pragma once

#include <string>

#include "absl/time/time.h"
#include "daemon/worker/session.h"

namespace sluice::worker {

// On the session's thread, after its command loop. Returns what has not ended within the bound: then
// nothing of the session may be destroyed. Returns "" if all has. Two things may still hold the
// session then: a build that is under way, until builds().stopped(), and the driver.
std::string DrainSession(Session& session, absl::Duration bound);

// Returns what the driver still holds of the session's memory, or "". A driver may do so for good
// although every object was released and every command has ended: one of CI's kept a reference to a
// buffer in one of some 300 sessions. Nobody else has to end for that.
std::string HeldByDriver(Session& session);

}  // namespace sluice::worker
