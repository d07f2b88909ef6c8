// SPDX-License-Identifier: Apache-2.0
//
// The parts of the sandbox that depend on more than the kernel: on a user, the bounds of a
// container or of a unit, a security module. A worker that is started for nothing else tries it, as
// workers will.
#pragma once

#include <string>

#include "broker/config/config.h"

namespace sluice::broker {

// Each is the reason why workers go without; "" if they have it.
struct SandboxTrial {
  std::string namespaces;
  std::string private_root;
};

// Tries once for what the configuration says of workers; after that from memory. Event loop thread
// only; takes as long as a process takes to start.
const SandboxTrial& TrySandbox(const Config& config);

}  // namespace sluice::broker
