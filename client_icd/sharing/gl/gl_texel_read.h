// SPDX-License-Identifier: Apache-2.0
// Reads textures in OpenGL ES that no framebuffer takes, such as one made by
// glTexImage2D(GL_RGBA, GL_RGBA, GL_FLOAT) (GL_OES_texture_float): a compute shader fetches the
// texels and writes their bits to a buffer. Floats and pairs of halves, which a shader keeps bit
// for bit; of 2D, array and 3D textures.
//
// Owned by a holding (gl_holding.h), in whose context it works. GL thread only.
#pragma once

#include <CL/cl.h>

#include <memory>

#include "client_icd/sharing/gl/gl_holding.h"

namespace sluice::client::sharing {

class GlTexelRead {
 public:
  // Null if there is no such shader for textures like this one.
  static std::unique_ptr<GlTexelRead> Make(GlContexts& contexts, const GlDescription& about);

  // The level's texels to the buffer's beginning, tightly packed. The texture is bound to `unit`,
  // its base level is `base`. Enqueued, not finished.
  cl_int Run(GlContexts& contexts, const GlDescription& about, GLuint unit, GLint base,
             GLuint buffer);
  void Drop();

 private:
  explicit GlTexelRead(const GlComputeFunctions& functions) : functions_(functions) {}

  const GlComputeFunctions functions_;
  GLuint program_ = 0;
  GLuint sampler_ = 0;
};

}  // namespace sluice::client::sharing
