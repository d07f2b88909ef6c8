// SPDX-License-Identifier: Apache-2.0
// Events of fences that are not OpenCL's: cl_khr_gl_event (gl_event.cc) and cl_khr_egl_event
// (egl_event.cc). The event is one of ours that a waiter ends; queues wait for it as for a user
// event. Thread-safe: no state.
#pragma once

#include <CL/cl.h>

#include "client_icd/sharing/gl/fence_waiters.h"

namespace sluice::client::sharing {

// "The command associated with the linked sync object has not completed" until `fence` has: the
// event then ends, with an error if the wait failed.
cl_event LinkFence(cl_context context, cl_command_type type, FenceWaiters::Fence fence,
                   cl_int* errcode_ret);

}  // namespace sluice::client::sharing
