// SPDX-License-Identifier: Apache-2.0
// The properties of an OpenCL context that name a GL context (cl_khr_gl_sharing, section 9.3.4).
// Thread-safe: no state.
#pragma once

#include <CL/cl.h>

#include <memory>

#include "client_icd/objects/args.h"
#include "client_icd/sharing/gl/gl_share.h"

namespace sluice::sharing {

// One of table 4.5's names that cl_khr_gl_sharing adds.
bool IsGlProperty(uint64_t name);

// Makes a place in the share group of the GL context that the list names, and leaves `out` null if
// it names none. CL_INVALID_PROPERTY, CL_INVALID_OPERATION, CL_INVALID_GL_SHAREGROUP_REFERENCE_KHR.
cl_int OpenGlShare(const PropertyList& list, std::shared_ptr<GlShare>* out);

}  // namespace sluice::sharing
