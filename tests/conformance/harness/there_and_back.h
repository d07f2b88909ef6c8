// SPDX-License-Identifier: Apache-2.0
//
// The smallest real work, for what happens to whole processes. Owner: the caller. Thread: any.
// Trust: none needed.
#pragma once

#include "tests/conformance/harness/own.h"

namespace sluice::conformance {

// A number there and back, in a context of its own. Returns it, or -1.
cl_int ThereAndBack(cl_device_id device, cl_int number);

}  // namespace sluice::conformance
