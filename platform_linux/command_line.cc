// SPDX-License-Identifier: Apache-2.0
#include "broker/os/command_line.h"

namespace sluice::os {

void TakeCommandLine(int*, char***) {}

}  // namespace sluice::os
