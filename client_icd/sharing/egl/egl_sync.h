// SPDX-License-Identifier: Apache-2.0
// Fences of EGL (EGL_KHR_fence_sync, which EGL 1.5 has as its own). They need no current context;
// the thread's EGL error is changed, so that they are asked for on threads of ours only.
// Thread-safe: no state.
#pragma once

#include <CL/cl.h>

#include "absl/time/time.h"

namespace sluice::client::sharing {

// A fence of that display. False for what is none, another kind of sync object among them.
bool IsEglFence(void* display, void* sync);
// Has the context that is current on this thread wait for the fence: what it is given from now on
// comes after. Returns at once, but with a GL that draws in software, which draws first. False if
// the display cannot (EGL_KHR_wait_sync), or the context is not of it.
bool FollowEglFence(void* display, void* sync);
// CL_OUT_OF_RESOURCES when it is late, or is no more.
cl_int WaitForEglFence(void* display, void* sync, absl::Time deadline);

}  // namespace sluice::client::sharing
