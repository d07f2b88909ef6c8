// SPDX-License-Identifier: Apache-2.0
//
// Opens the sockets that listen. Plain functions.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "broker/os/scoped_handle.h"

namespace sluice::gateway {

// One for each address of the host in "HOST:PORT" that this machine has; for a wildcard one socket,
// which takes both families.
absl::StatusOr<std::vector<os::UniqueFd>> ListenOn(const std::string& address);

int PortOf(int listener);

}  // namespace sluice::gateway
