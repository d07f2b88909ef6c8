// SPDX-License-Identifier: Apache-2.0
// One GL object of the application, or one level or face of it, held in our context so that it
// lives on after its name. It is described as OpenCL sees it, and its contents are moved to and
// from a buffer on the GL's side. That buffer is one for bytes under way to the worker (staging),
// or the worker's own memory, imported (device shadow): the same copies serve both.
//
// How each kind is held, since a name may be deleted and used again at any time:
//   buffer        as the element array of a vertex array object of ours
//   texture       bound to a texture unit of ours; for reading in OpenGL ES, which has no
//                 glGetTexImage, each layer attached to a framebuffer object of ours as well
//   renderbuffer  attached to a framebuffer object of ours
//
// The object's state is asked for before each copy, since the application may have changed it; GL's
// refusal is not relied on. In a context without errors (KHR_no_error), as ours is if the
// application's is, GL tells of no refusal but GL_OUT_OF_MEMORY, and a wrong call may do anything.
//
// GL thread only (gl_share.h); owned by a GlObject (gl_object.h).
#pragma once

#include <CL/cl.h>
#include <CL/cl_gl.h>

#include <memory>
#include <optional>

#include "client_icd/sharing/gl/gl_format.h"
#include "client_icd/sharing/gl/gl_share.h"

namespace sluice::client::sharing {

struct GlDescription {
  cl_gl_object_type type = 0;
  GLuint name = 0;    // As given; for queries only.
  GLenum target = 0;  // Of a texture.
  GLint level = 0;
  const GlFormat* format = nullptr;  // Null for a buffer.
  size_t width = 0;                  // Bytes of a buffer.
  size_t height = 1;                 // Layers of a 1D array.
  size_t depth = 1;                  // Layers of a 2D array.
  size_t bytes = 0;                  // All of it, tightly packed.

  size_t elements() const { return width * height * depth; }
};

class GlHolding {
 public:
  virtual ~GlHolding() = default;  // Only after Drop.

  const GlDescription& about() const { return about_; }

  // The one of our contexts (GlContexts::Use) that Pack and Unpack work in.
  virtual size_t context() const { return 0; }

  // How much room `Pack` needs in its buffer; more than about().bytes if it must Narrow.
  virtual size_t packed_room() const { return about_.bytes; }
  // The object's contents to the beginning of a buffer, tightly packed. Enqueued, not finished.
  virtual cl_int Pack(GlContexts& contexts, GLuint buffer) = 0;
  // The buffer's contents as Pack left them, to packed bytes. True for `packs_exactly` if they are
  // those already, and Unpack takes them so.
  virtual bool packs_exactly() const { return true; }
  virtual void Narrow(const uint8_t* packed_in_buffer, uint8_t* packed);
  // Packed bytes to what Unpack finds in its buffer, and how many those are. After a Narrow.
  virtual size_t unpack_room() const { return about_.bytes; }
  virtual void Widen(const uint8_t* packed, uint8_t* in_buffer) const;
  // The buffer's bytes to the object. Enqueued, not finished.
  virtual cl_int Unpack(GlContexts& contexts, GLuint buffer) = 0;
  // Copies by shaders (gl_copy.h). Prepare is asked once, by the call that makes the memory object;
  // false: there will be none. A copy that gives nothing has not been made: at this moment its
  // bytes would not be the object's, and Pack or Unpack must make it.
  virtual bool PrepareShaders(GlContexts&) { return false; }
  virtual std::optional<cl_int> CopyByShader(GlContexts&, GLuint /*buffer*/, bool /*pack*/) {
    return std::nullopt;
  }
  virtual void Drop(GlContexts& contexts) = 0;

 protected:
  GlDescription about_;
};

// The codes of sections 9.4.2 to 9.4.4, but for flags and targets, which the caller has checked.
cl_int HoldGlBuffer(GlContexts& contexts, GLuint name, std::unique_ptr<GlHolding>* out);
cl_int HoldGlTexture(GlContexts& contexts, GLenum target, GLint level, GLuint name,
                     std::unique_ptr<GlHolding>* out);
cl_int HoldGlRenderbuffer(GlContexts& contexts, GLuint name, std::unique_ptr<GlHolding>* out);
// A texture of ours that is the EGLImage's sibling. CL_INVALID_EGL_OBJECT_KHR if the image is none,
// CL_IMAGE_FORMAT_NOT_SUPPORTED if it has no OpenCL format or cannot be a two-dimensional texture.
cl_int HoldEglImage(GlContexts& contexts, void* image, std::unique_ptr<GlHolding>* out);

}  // namespace sluice::client::sharing
