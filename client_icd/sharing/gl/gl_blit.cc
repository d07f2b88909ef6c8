// SPDX-License-Identifier: Apache-2.0
#include "client_icd/sharing/gl/gl_blit.h"

namespace sluice::client::sharing {

GLenum GlBlit::AttachmentOf(const GlFormat& format) {
  return format.is_depth() ? GL_DEPTH_ATTACHMENT : GL_COLOR_ATTACHMENT0;
}

void GlBlit::Write(GlContexts& contexts, const GlDescription& about, GLuint buffer,
                   GLuint framebuffer) {
  const GlFunctions& gl = contexts.gl();
  const GLsizei width = static_cast<GLsizei>(about.width);
  const GLsizei height = static_cast<GLsizei>(about.height);
  contexts.UseScratchUnit();
  if (texture_ == 0) gl.GenTextures(1, &texture_);
  gl.BindTexture(GL_TEXTURE_2D, texture_);
  gl.TexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAX_LEVEL, 0);
  gl.BindBuffer(GL_PIXEL_UNPACK_BUFFER, buffer);
  gl.TexImage2D(GL_TEXTURE_2D, 0, static_cast<GLint>(about.format->internal_format), width, height,
                0, about.format->transfer_format, about.format->transfer_type, nullptr);
  gl.BindBuffer(GL_PIXEL_UNPACK_BUFFER, 0);
  if (source_ == 0) gl.GenFramebuffers(1, &source_);
  gl.BindFramebuffer(GL_READ_FRAMEBUFFER, source_);
  gl.FramebufferTexture2D(GL_READ_FRAMEBUFFER, AttachmentOf(*about.format), GL_TEXTURE_2D, texture_,
                          0);
  gl.BindFramebuffer(GL_DRAW_FRAMEBUFFER, framebuffer);
  const GLbitfield mask = about.format->is_depth() ? GL_DEPTH_BUFFER_BIT : GL_COLOR_BUFFER_BIT;
  // Not if there was no memory for the texture.
  if (gl.CheckFramebufferStatus(GL_READ_FRAMEBUFFER) == GL_FRAMEBUFFER_COMPLETE)
    gl.BlitFramebuffer(0, 0, width, height, 0, 0, width, height, mask, GL_NEAREST);
  gl.BindFramebuffer(GL_READ_FRAMEBUFFER, 0);
  gl.BindFramebuffer(GL_DRAW_FRAMEBUFFER, 0);
  gl.BindTexture(GL_TEXTURE_2D, 0);
}

void GlBlit::Drop(const GlFunctions& gl) {
  if (source_ != 0) gl.DeleteFramebuffers(1, &source_);
  if (texture_ != 0) gl.DeleteTextures(1, &texture_);
}

}  // namespace sluice::client::sharing
