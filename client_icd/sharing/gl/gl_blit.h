// SPDX-License-Identifier: Apache-2.0
// Writes to what is written as it is by nothing but drawing: a texture of ours takes the bytes, and
// is blitted to a framebuffer. Renderbuffers are such, and EGLImages: glTexSubImage2D may
// write to level 0 of the texture that an image of another level was made from.
//
// Of one context, which is current in every call. GL thread only.
#pragma once

#include "client_icd/sharing/gl/gl_holding.h"

namespace sluice::client::sharing {

class GlBlit {
 public:
  // The first bytes of the buffer become those of the framebuffer, which is complete. Errors are
  // left for GlContexts::TakeError.
  void Write(GlContexts& contexts, const GlDescription& about, GLuint buffer, GLuint framebuffer);
  void Drop(const GlFunctions& gl);

  // The attachment of elements of the format in a framebuffer.
  static GLenum AttachmentOf(const GlFormat& format);

 private:
  // Made with the first write.
  GLuint texture_ = 0;
  GLuint source_ = 0;  // The framebuffer that it is read through.
};

}  // namespace sluice::client::sharing
