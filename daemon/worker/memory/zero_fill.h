// SPDX-License-Identifier: Apache-2.0
// New memory that has no contents of its own: nobody sees another's bytes in it.
#pragma once

#include <CL/cl.h>

#include <cstddef>

namespace sluice::worker {

// Fills the buffer with zeros on the queue, which is in order. Returns before it is done: clFinish
// says when.
cl_int EnqueueZeros(cl_command_queue queue, cl_mem buffer, size_t bytes);

}  // namespace sluice::worker
