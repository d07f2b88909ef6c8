// SPDX-License-Identifier: Apache-2.0
//
// The host's files that the broker's helpers need; everything else is out of their reach
// (broker/os/file_access.h) from before the gateway hears a stranger's byte, or the allocator loads
// a driver. Each confines itself once, by main, before any other thread. OK where the system cannot
// too: then a helper reaches what its user may, as the daemon's log says of workers. (A worker's
// are worker_files.h's.) With `private_root` they are in a root of their own before
// (private_root.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace sluice::os {

// Libraries, and how names of hosts become addresses. It listens on these ports and connects to
// none but name servers'; it writes no file. It has the descriptors that it was given.
absl::Status ConfineGatewayFiles(const std::vector<uint16_t>& ports, bool private_root);

// Vulkan's drivers and device nodes, to read `more`, which the operator adds, and no port.
absl::Status ConfineAllocatorFiles(const std::vector<std::string>& more, bool private_root);

}  // namespace sluice::os
