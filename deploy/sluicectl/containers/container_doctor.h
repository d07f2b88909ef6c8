// SPDX-License-Identifier: Apache-2.0
//
// `sluicectl doctor --container PID`: why does a program in that process's container see no device?
// Looks from outside at what the container has: nothing has to be installed in it, and nothing of
// it is run or loaded. Main thread only; changes nothing.
#pragma once

#include <sys/types.h>

#include "deploy/sluicectl/admin_commands.h"

namespace sluice::ctl {

int ContainerDoctorCommand(const CommonFlags& flags, pid_t pid);

}  // namespace sluice::ctl
