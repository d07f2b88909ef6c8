// SPDX-License-Identifier: Apache-2.0
// Renderbuffers. They are read and written (gl_blit.h) through a framebuffer.
#include "client_icd/sharing/gl/gl_blit.h"
#include "client_icd/sharing/gl/gl_holding.h"
#include "client_icd/sharing/gl/gl_read.h"

namespace sluice::client::sharing {
namespace {

GLint Parameter(const GlFunctions& gl, GLenum name) {
  GLint value = 0;
  gl.GetRenderbufferParameteriv(GL_RENDERBUFFER, name, &value);
  return value;
}

// Of the renderbuffer in a framebuffer object that is bound for drawing, what must stay as it is
// between its description and its copies.
struct Attached {
  GLint type = 0;
  GLint samples = 0;
  bool complete = false;
  friend bool operator==(const Attached&, const Attached&) = default;

  static Attached Ask(const GlFunctions& gl, const GlFormat& format) {
    Attached now;
    now.complete = gl.CheckFramebufferStatus(GL_DRAW_FRAMEBUFFER) == GL_FRAMEBUFFER_COMPLETE;
    if (!now.complete) return now;
    gl.GetFramebufferAttachmentParameteriv(GL_DRAW_FRAMEBUFFER, GlBlit::AttachmentOf(format),
                                           GL_FRAMEBUFFER_ATTACHMENT_COMPONENT_TYPE, &now.type);
    gl.GetIntegerv(GL_SAMPLES, &now.samples);
    return now;
  }
};

class RenderbufferHolding final : public GlHolding {
 public:
  RenderbufferHolding(const GlDescription& about, GLuint framebuffer, const Attached& attached,
                      const GlRead& read)
      : framebuffer_(framebuffer), attached_(attached), read_(read) {
    about_ = about;
  }

  size_t packed_room() const override { return about_.elements() * read_.element_bytes; }
  bool packs_exactly() const override { return read_.exact; }
  void Narrow(const uint8_t* packed_in_buffer, uint8_t* packed) override {
    if (read_.exact) return GlHolding::Narrow(packed_in_buffer, packed);
    NarrowElements(*about_.format, read_, packed_in_buffer, about_.elements(), packed);
  }

  cl_int Pack(GlContexts& contexts, GLuint buffer) override {
    if (!contexts.Use(0)) return CL_OUT_OF_RESOURCES;
    const GlFunctions& gl = contexts.gl();
    if (!IsAsDescribed(gl)) return CL_INVALID_GL_OBJECT;
    gl.BindFramebuffer(GL_READ_FRAMEBUFFER, framebuffer_);
    gl.BindBuffer(GL_PIXEL_PACK_BUFFER, buffer);
    gl.ReadPixels(0, 0, static_cast<GLsizei>(about_.width), static_cast<GLsizei>(about_.height),
                  read_.format, read_.type, nullptr);
    gl.BindBuffer(GL_PIXEL_PACK_BUFFER, 0);
    gl.BindFramebuffer(GL_READ_FRAMEBUFFER, 0);
    return contexts.TakeError(CL_INVALID_GL_OBJECT);
  }

  cl_int Unpack(GlContexts& contexts, GLuint buffer) override {
    if (!contexts.Use(0)) return CL_OUT_OF_RESOURCES;
    const GlFunctions& gl = contexts.gl();
    if (!IsAsDescribed(gl)) return CL_INVALID_GL_OBJECT;
    blit_.Write(contexts, about_, buffer, framebuffer_);
    return contexts.TakeError(CL_INVALID_GL_OBJECT);
  }

  void Drop(GlContexts& contexts) override {
    if (!contexts.Use(0)) return;
    contexts.gl().DeleteFramebuffers(1, &framebuffer_);
    blit_.Drop(contexts.gl());
  }

 private:
  // The application may have given it another storage.
  bool IsAsDescribed(const GlFunctions& gl) const {
    gl.BindFramebuffer(GL_DRAW_FRAMEBUFFER, framebuffer_);
    const bool same = Attached::Ask(gl, *about_.format) == attached_;
    gl.BindFramebuffer(GL_DRAW_FRAMEBUFFER, 0);
    return same && HasItsSize(gl);
  }
  // So has one whose name is deleted: nobody can give it another.
  bool HasItsSize(const GlFunctions& gl) const {
    if (gl.IsRenderbuffer(about_.name) != GL_TRUE) return true;
    gl.BindRenderbuffer(GL_RENDERBUFFER, about_.name);
    const bool same = Parameter(gl, GL_RENDERBUFFER_WIDTH) == static_cast<GLint>(about_.width) &&
                      Parameter(gl, GL_RENDERBUFFER_HEIGHT) == static_cast<GLint>(about_.height);
    gl.BindRenderbuffer(GL_RENDERBUFFER, 0);
    return same;
  }

  GLuint framebuffer_;
  GlBlit blit_;
  const Attached attached_;
  const GlRead read_;
};

// Of the renderbuffer that is bound.
cl_int Describe(const GlFunctions& gl, GlDescription* about) {
  // Section 9.4.4: CL_INVALID_GL_OBJECT if the width or height of renderbuffer is zero.
  about->width = static_cast<size_t>(Parameter(gl, GL_RENDERBUFFER_WIDTH));
  about->height = static_cast<size_t>(Parameter(gl, GL_RENDERBUFFER_HEIGHT));
  if (about->width == 0 || about->height == 0) return CL_INVALID_GL_OBJECT;
  // CL_INVALID_OPERATION if renderbuffer is a multi-sample GL renderbuffer object.
  if (Parameter(gl, GL_RENDERBUFFER_SAMPLES) > 0) return CL_INVALID_OPERATION;
  // CL_INVALID_IMAGE_FORMAT_DESCRIPTOR if the internal format does not map to a supported OpenCL
  // image format.
  const GLenum internal = static_cast<GLenum>(Parameter(gl, GL_RENDERBUFFER_INTERNAL_FORMAT));
  about->format = FindGlFormat(internal);
  if (about->format == nullptr) {
    // The unsized names that a renderbuffer may have are all of normalised formats.
    about->format = FindUnsizedGlFormat(
        internal,
        {GL_UNSIGNED_NORMALIZED, Parameter(gl, GL_RENDERBUFFER_RED_SIZE),
         Parameter(gl, GL_RENDERBUFFER_GREEN_SIZE), Parameter(gl, GL_RENDERBUFFER_BLUE_SIZE),
         Parameter(gl, GL_RENDERBUFFER_ALPHA_SIZE)});
  }
  // Section 9.9.1: CL_DEPTH_STENCIL "can only be created using the clCreateFromGLTexture API".
  if (about->format == nullptr || about->format->has_stencil())
    return CL_INVALID_IMAGE_FORMAT_DESCRIPTOR;
  about->bytes = about->elements() * about->format->element_bytes;
  return CL_SUCCESS;
}

}  // namespace

cl_int HoldGlRenderbuffer(GlContexts& contexts, GLuint name, std::unique_ptr<GlHolding>* out) {
  if (!contexts.Use(0)) return CL_OUT_OF_RESOURCES;
  const GlFunctions& gl = contexts.gl();
  // CL_INVALID_GL_OBJECT if renderbuffer is not a GL renderbuffer object.
  if (gl.IsRenderbuffer(name) != GL_TRUE) return CL_INVALID_GL_OBJECT;
  GlDescription about;
  about.type = CL_GL_OBJECT_RENDERBUFFER;
  about.name = name;
  gl.BindRenderbuffer(GL_RENDERBUFFER, name);
  cl_int status = Describe(gl, &about);
  gl.BindRenderbuffer(GL_RENDERBUFFER, 0);
  if (status != CL_SUCCESS) {
    contexts.TakeError(CL_SUCCESS);
    return status;
  }
  GLuint framebuffer = 0;
  gl.GenFramebuffers(1, &framebuffer);
  gl.BindFramebuffer(GL_FRAMEBUFFER, framebuffer);
  gl.FramebufferRenderbuffer(GL_FRAMEBUFFER, GlBlit::AttachmentOf(*about.format), GL_RENDERBUFFER,
                             name);
  std::optional<GlRead> read;
  const Attached attached = Attached::Ask(gl, *about.format);
  if (attached.complete) read = ChooseGlRead(contexts, *about.format);
  gl.BindFramebuffer(GL_FRAMEBUFFER, 0);
  status = contexts.TakeError(CL_INVALID_GL_OBJECT);
  if (status == CL_SUCCESS && !read) status = CL_INVALID_IMAGE_FORMAT_DESCRIPTOR;
  if (status != CL_SUCCESS) {
    gl.DeleteFramebuffers(1, &framebuffer);
    return status;
  }
  *out = std::make_unique<RenderbufferHolding>(about, framebuffer, attached, *read);
  return CL_SUCCESS;
}

}  // namespace sluice::client::sharing
