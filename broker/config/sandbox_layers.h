// SPDX-License-Identifier: Apache-2.0
//
// The layers of the sandbox around each worker, as the system has them (found out once) and the
// configuration wants them. For the log, and for `require` of [worker], by which an operator has a
// daemon start with all of these or not at all.
#pragma once

#include <string>
#include <vector>

#include "broker/config/config.h"

namespace sluice::broker {

struct SandboxLayer {
  const char* name;
  std::string missing;  // Why it is not in force; "" if it is.
};

// All there are. (The users that workers run as are a matter of their own: WorkerUsers.)
std::vector<SandboxLayer> SandboxLayers(const Config& config);

// For a helper: which of the layers that not every system offers it is to have. Every helper knows
// these arguments.
std::vector<std::string> SandboxArguments(const Config& config);

// Why that layer cannot be required; "" if it is in force.
std::string LayerProblem(const Config& config, const std::string& name);

// "files, programs, ...", and with what is missing: "files, programs; not system-calls (...)".
std::string DescribeLayers(const Config& config);

}  // namespace sluice::broker
