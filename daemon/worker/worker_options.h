// SPDX-License-Identifier: Apache-2.0
// The worker's command line (broker/children/README.md). Written by the broker, which is trusted.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/os/sandbox.h"
#include "daemon/worker/session.h"

namespace sluice::worker {

struct WorkerOptions {
  SessionOptions session;
  bool probe = false;
  bool pool = false;  // Several sessions' (pool/pool.h).
  bool pool_takes_cpu_devices = false;
  bool says_ready = false;   // A broker of before this flag takes the message for a fault.
  bool try_sandbox = false;  // Only that, and the obstacles to `snapshot_fd`.
  int snapshot_fd = -1;
  bool namespaces = false;    // Of its own.
  bool private_root = false;  // With these, and what it reads is all that there is.
  bool confine_files = true;
  // kNone: the broker gives no pages. kNowhere: for shares alone.
  enum class Turns { kNone, kNowhere, kWherePaid, kEverywhere };
  Turns turns = Turns::kNone;
  std::vector<std::string> executable;  // Besides what compilers run.
  os::CallRule system_calls = os::CallRule::kListed;
  std::vector<std::string> readable;  // Besides what every worker may read.
};

absl::StatusOr<WorkerOptions> ParseWorkerOptions(int argc, char** argv);

// Gives the gate the pages that came with --turns, if there are any.
absl::Status AttachTurns(WorkerOptions::Turns turns, TurnGate* gate);

}  // namespace sluice::worker
