// SPDX-License-Identifier: Apache-2.0
//
// Whom the broker's children run as: LocalService where the broker is the system, else the broker's
// own user, and either without privileges, without the administrators' rights, and at low
// integrity, so that a child writes to nothing of its user's but what is meant for it. Thread-safe.
#pragma once

#include "absl/status/statusor.h"
#include "platform_win/handles/handle_table.h"

namespace sluice::os {

absl::StatusOr<OwnedHandle> CreateRestrictedChildToken();

}  // namespace sluice::os
