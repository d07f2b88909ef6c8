// SPDX-License-Identifier: Apache-2.0
// A kernel's description for the client, which checks arguments and launches by it without asking
// again. Thread-safe: no state.
#pragma once

#include "daemon/worker/objects.h"
#include "proto/command.pb.h"
#include "proto/program_record.pb.h"

namespace sluice::worker {

namespace pb = v1;

// Name and arguments; what the driver does not say comes from `record`, if there is one. False if
// something stays unknown.
bool DescribeArguments(cl_kernel kernel, const pb::ProgramRecord* record,
                       pb::KernelDescription* out);

// Of one argument, built without -cl-kernel-arg-info, as `asked` says: shows what the driver tells
// of such kernels. Null if none can be built. Waits in the driver.
UniqueCl<cl_kernel> MakeUnaskedKernel(const ContextObject& context, ArgInfoAsked asked);

// Of the program, which was built as `asked` says.
void DescribeKernel(cl_kernel kernel, const ProgramObject& program, ArgInfoAsked asked,
                    pb::KernelDescription* out);

// All kernels of the program, and their number. Nothing if the driver tells of none, or if they are
// more than anybody uses.
void DescribeKernels(const ProgramObject& program, ArgInfoAsked asked, pb::Answer* out);

}  // namespace sluice::worker
