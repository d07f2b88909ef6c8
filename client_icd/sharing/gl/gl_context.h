// SPDX-License-Identifier: Apache-2.0
// cl_khr_gl_sharing as contexts see it: its row of extensions, and the properties that name a GL
// context (section 9.3.4).
// Thread-safe: no state.
#pragma once

#include <CL/cl.h>

#include <memory>

#include "client_icd/base/args.h"
#include "client_icd/objects/extensions.h"
#include "client_icd/sharing/gl/gl_share.h"

namespace sluice::client::sharing {

// cl_khr_gl_sharing, cl_khr_gl_event and cl_khr_gl_depth_images.
extern const InteropExtension kGlInterop;

// Makes a place in the share group of the GL context that the list names, and leaves `out` null if
// it names none. CL_INVALID_PROPERTY, CL_INVALID_OPERATION, CL_INVALID_GL_SHAREGROUP_REFERENCE_KHR.
cl_int OpenGlShare(const PropertyList& list, std::shared_ptr<GlShare>* out);

}  // namespace sluice::client::sharing
