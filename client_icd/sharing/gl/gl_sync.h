// SPDX-License-Identifier: Apache-2.0
// Acquiring and releasing GL objects with the implicit synchronisation of cl_khr_gl_event (section
// 9.5.5): what the GL context that is current on the calling thread was told before an acquire is
// done before the acquire is, and what it is told after a release comes after the release.
//
// This is the one place that touches the application's GL context: an acquire puts a fence into it
// and flushes it, and is CL_OUT_OF_RESOURCES where GL takes none (between glBegin and glEnd; GL
// then has GL_INVALID_OPERATION to tell). A release waits in the calling thread for its own end,
// since OpenCL and GL have no semaphore in common here; never while the application has a user
// event to set in that context, for it may be setting it next. Thread-safe.
#pragma once

#include <CL/cl.h>

#include "client_icd/sharing/core/core.h"

namespace sluice::client::sharing {

cl_int AcquireGlObjects(const SyncArguments& arguments);
cl_int ReleaseGlObjects(const SyncArguments& arguments);

}  // namespace sluice::client::sharing
