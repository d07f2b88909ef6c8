// SPDX-License-Identifier: Apache-2.0
// clCreateBuffer with CL_MEM_USE_GRALLOC_PTR_IMG: memory.cc sends it here. Thread-safe: no state.
#pragma once

#include <CL/cl.h>

#include "client_icd/objects/args.h"
#include "client_icd/objects/context.h"

namespace sluice::sharing {

cl_mem CreateGrallocBuffer(Context* context, const PropertyList& properties, cl_mem_flags flags,
                           size_t size, void* host_ptr, cl_int* errcode_ret);

}  // namespace sluice::sharing
