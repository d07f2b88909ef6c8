// SPDX-License-Identifier: Apache-2.0
//
// Descriptors 0 to 2 are the application's, also while it has them closed: it would write its
// output to whatever we open there. Used inside platform_linux by code that opens descriptors in a
// stranger's process.
#pragma once

#include "broker/os/scoped_handle.h"

namespace sluice::os {

inline constexpr int kFirstOwnFd = 3;

// Returns `fd`, moved to a number above 2 (close-on-exec) if it has a lower one. Invalid, with
// errno, if `fd` is, or if there is no number left.
UniqueFd AboveStandard(UniqueFd fd);

}  // namespace sluice::os
