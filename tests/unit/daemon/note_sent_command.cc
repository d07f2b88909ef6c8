// SPDX-License-Identifier: Apache-2.0
// The loopback harness tells which commands it sends; only the loopback tests listen.
#include "tests/loopback/harness.h"

namespace sluice::worker {

void NoteSentCommand(int) {}

}  // namespace sluice::worker
