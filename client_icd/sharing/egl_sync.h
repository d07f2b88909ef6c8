// SPDX-License-Identifier: Apache-2.0
// Fences of EGL (EGL_KHR_fence_sync, which EGL 1.5 has as its own). They need no current context;
// the thread's EGL error is changed, so that they are asked for on threads of ours only.
// Thread-safe: no state.
#pragma once

#include <CL/cl.h>

#include "absl/time/time.h"

namespace sluice::sharing {

// A fence of that display. False for what is none, another kind of sync object among them.
bool IsEglFence(void* display, void* sync);
// CL_OUT_OF_RESOURCES when it is late, or is no more.
cl_int WaitForEglFence(void* display, void* sync, absl::Time deadline);

}  // namespace sluice::sharing
