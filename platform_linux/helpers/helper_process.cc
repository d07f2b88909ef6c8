// SPDX-License-Identifier: Apache-2.0
#include "daemon/helpers/helper_process.h"

#include <sys/prctl.h>
#include <unistd.h>

namespace sluice::os {

void HideFromOthers() { ::prctl(PR_SET_DUMPABLE, 0); }

void HideThreadsFromOthers() {}

void EndProcessNow(int code) { ::_exit(code); }

}  // namespace sluice::os
