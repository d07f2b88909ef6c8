// SPDX-License-Identifier: Apache-2.0
// One handler per wire command, declared from its row in commands.inc and written in the file of
// its column. Each has the shape: find the objects, decode the values, call the driver, publish.
// Session thread only.
#pragma once

#include "daemon/worker/call.h"
#include "daemon/worker/session.h"

namespace sluice::worker {

#define COMMAND(Name, field, reply) \
  HandlerResult Handle##Name(Session& session, const pb::Name& cmd, Call& call);
#include "proto/commands.inc"

}  // namespace sluice::worker
