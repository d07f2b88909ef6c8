// SPDX-License-Identifier: Apache-2.0
// The buffer behind a buffer texture, held as buffer objects are. GL thread only.
#pragma once

#include "client_icd/sharing/gl/gl_holding.h"

namespace sluice::client::sharing {

// `about` describes the texture; its bytes begin at `offset` of the buffer. CL_INVALID_GL_OBJECT if
// they do not lie in it.
cl_int HoldGlBufferOfTexture(GlContexts& contexts, GLuint buffer, GLintptr offset,
                             const GlDescription& about, std::unique_ptr<GlHolding>* out);

}  // namespace sluice::client::sharing
