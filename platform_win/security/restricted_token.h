// SPDX-License-Identifier: Apache-2.0
//
// The token of the broker's children: LocalService's where the broker is the system, else the
// broker's own user's. It has no privileges, no administrators' rights, and low integrity, so that
// a child can write only to its user's files that are meant for it. Thread-safe.
#pragma once

#include "absl/status/statusor.h"
#include "platform_win/handles/handle_table.h"

namespace sluice::os {

absl::StatusOr<OwnedHandle> CreateRestrictedChildToken();

}  // namespace sluice::os
