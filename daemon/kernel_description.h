// SPDX-License-Identifier: Apache-2.0
// What the client needs to know of a kernel to judge its arguments and launches without asking
// again. Thread-safe: no state.
#pragma once

#include "daemon/objects.h"
#include "proto/command.pb.h"

namespace sluice {

namespace pb = v1;

void DescribeKernel(const KernelObject& kernel, pb::KernelDescription* out);

}  // namespace sluice
