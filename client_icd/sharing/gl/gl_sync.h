// SPDX-License-Identifier: Apache-2.0
// Acquiring and releasing GL objects with the implicit synchronisation of cl_khr_gl_event (section
// 9.5.5). Commands to the calling thread's current GL context before an acquire are done before the
// acquire is, and those after a release come after the release.
//
// This is the one place that touches the application's GL context. An acquire puts a fence into it
// and flushes it, and is CL_OUT_OF_RESOURCES where GL takes none (between glBegin and glEnd; GL
// then has GL_INVALID_OPERATION to tell). A release waits in the calling thread for its own end,
// since OpenCL and GL have no semaphore in common here. Never while the application has a user
// event to set in that context, for it may be setting it next. Thread-safe.
#pragma once

#include <CL/cl.h>

#include "client_icd/sharing/core/core.h"

namespace sluice::client::sharing {

cl_int AcquireGlObjects(const SyncArguments& arguments);
cl_int ReleaseGlObjects(const SyncArguments& arguments);

}  // namespace sluice::client::sharing
