// SPDX-License-Identifier: Apache-2.0
// The parts shared by the sessions of one pool: sessions of one isolation domain in this process.
// Lives until the process ends.
#pragma once

#include <functional>

#include "daemon/worker/pool/printing_turns.h"
#include "daemon/worker/pool/shared_contexts.h"
#include "daemon/worker/queues/turn_gate.h"

namespace sluice::worker {

struct PoolParts {
  bool takes_cpu_devices = false;
  SharedContexts contexts;
  TurnGate turns;
  PrintingTurns printing;
  // A command has ended with an error of the driver's: it may be the end of its context. Any thread.
  std::function<void()> on_failed;
};

}  // namespace sluice::worker
