// SPDX-License-Identifier: Apache-2.0
//
// Descriptors 0 to 2 are the application's, also while it has them closed: what we open there would
// be what it writes its output to. Used inside platform_linux by what opens descriptors in a
// stranger's process.
#pragma once

#include "broker/os/scoped_handle.h"

namespace sluice::os {

inline constexpr int kFirstOwnFd = 3;

// The same under a number that is not the application's, close-on-exec where it had to be moved.
// Invalid, with errno, if `fd` is, or if there is no more number to be had.
UniqueFd AboveStandard(UniqueFd fd);

}  // namespace sluice::os
