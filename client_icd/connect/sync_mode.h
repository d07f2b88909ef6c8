// SPDX-License-Identifier: Apache-2.0
// SLUICE_SYNC=1: sessions whose worker waits for the end of each command before it takes the next, to
// find mistakes with. Creations wait for their answers.
#pragma once

#include "broker/os/this_process.h"

namespace sluice::client {

inline constexpr char kSyncVariable[] = "SLUICE_SYNC";

inline bool WantsSync() { return os::EnvironmentVariable(kSyncVariable) == "1"; }

}  // namespace sluice::client
