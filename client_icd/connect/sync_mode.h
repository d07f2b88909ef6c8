// SPDX-License-Identifier: Apache-2.0
// SLUICE_SYNC=1: sessions whose commands wait for their results, to find mistakes with.
#pragma once

#include "broker/os/this_process.h"

namespace sluice::client {

inline constexpr char kSyncVariable[] = "SLUICE_SYNC";

inline bool WantsSync() { return os::EnvironmentVariable(kSyncVariable) == "1"; }

}  // namespace sluice::client
