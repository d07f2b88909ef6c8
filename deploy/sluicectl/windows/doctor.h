// SPDX-License-Identifier: Apache-2.0
//
// `sluicectl doctor` on Windows: why an application sees no device, step by step. Single thread.
#pragma once

#include "deploy/sluicectl/admin_commands.h"

namespace sluice::ctl {

// The exit code.
int DoctorCommand(const CommonFlags& flags);

}  // namespace sluice::ctl
