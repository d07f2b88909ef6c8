// SPDX-License-Identifier: Apache-2.0
// cl_img_use_gralloc_ptr: clCreateBuffer with CL_MEM_USE_GRALLOC_PTR_IMG. Thread-safe: no state.
#pragma once

#include "client_icd/objects/extensions.h"

namespace sluice::client::sharing {

extern const InteropExtension kGrallocInterop;

}  // namespace sluice::client::sharing
