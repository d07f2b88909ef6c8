// SPDX-License-Identifier: Apache-2.0
// Buffer objects, and textures that are made of one.
#include "client_icd/sharing/gl/gl_buffer.h"

#include <cstring>

namespace sluice::client::sharing {
namespace {

class BufferHolding final : public GlHolding {
 public:
  BufferHolding(GlDescription about, GLuint vertex_array, GLintptr offset)
      : vertex_array_(vertex_array), offset_(offset) {
    about_ = about;
  }

  cl_int Pack(GlContexts& contexts, GLuint buffer) override {
    return Copy(contexts, buffer, /*pack=*/true);
  }
  cl_int Unpack(GlContexts& contexts, GLuint buffer) override {
    return Copy(contexts, buffer, /*pack=*/false);
  }
  void Drop(GlContexts& contexts) override {
    if (contexts.Use(0)) contexts.gl().DeleteVertexArrays(1, &vertex_array_);
  }

 private:
  // On the GL's side, so that storage that the CPU may not touch is no obstacle.
  cl_int Copy(GlContexts& contexts, GLuint buffer, bool pack) {
    if (!contexts.Use(0)) return CL_OUT_OF_RESOURCES;
    const GlFunctions& gl = contexts.gl();
    const GLsizeiptr bytes = static_cast<GLsizeiptr>(about_.bytes);
    gl.BindVertexArray(vertex_array_);
    gl.BindBuffer(GL_COPY_WRITE_BUFFER, buffer);
    const bool copyable = IsCopyable(gl);
    if (!copyable) {
    } else if (pack) {
      gl.CopyBufferSubData(GL_ELEMENT_ARRAY_BUFFER, GL_COPY_WRITE_BUFFER, offset_, 0, bytes);
    } else {
      gl.CopyBufferSubData(GL_COPY_WRITE_BUFFER, GL_ELEMENT_ARRAY_BUFFER, 0, offset_, bytes);
    }
    gl.BindBuffer(GL_COPY_WRITE_BUFFER, 0);
    gl.BindVertexArray(0);
    return copyable ? contexts.TakeError(CL_INVALID_GL_OBJECT) : CL_INVALID_GL_OBJECT;
  }

  // The application may have mapped it, or given it another, smaller data store.
  bool IsCopyable(const GlFunctions& gl) const {
    GLint64 bytes = 0;
    GLint mapped = 0;
    GLint access = 0;
    gl.GetBufferParameteri64v(GL_ELEMENT_ARRAY_BUFFER, GL_BUFFER_SIZE, &bytes);
    gl.GetBufferParameteriv(GL_ELEMENT_ARRAY_BUFFER, GL_BUFFER_MAPPED, &mapped);
    if (mapped != 0)
      gl.GetBufferParameteriv(GL_ELEMENT_ARRAY_BUFFER, GL_BUFFER_ACCESS_FLAGS, &access);
    return bytes >= static_cast<GLint64>(about_.bytes) + offset_ &&
           (mapped == 0 || (access & GL_MAP_PERSISTENT_BIT) != 0);
  }

  const GLuint vertex_array_;
  const GLintptr offset_;
};

// Binds the buffer to a new vertex array and says how large it is.
cl_int BindToVertexArray(GlContexts& contexts, GLuint name, GLuint* vertex_array, GLint64* bytes) {
  if (!contexts.Use(0)) return CL_OUT_OF_RESOURCES;
  const GlFunctions& gl = contexts.gl();
  // Section 9.4.2: CL_INVALID_GL_OBJECT if bufobj is not a GL buffer object ...
  if (gl.IsBuffer(name) != GL_TRUE) return CL_INVALID_GL_OBJECT;
  gl.GenVertexArrays(1, vertex_array);
  gl.BindVertexArray(*vertex_array);
  gl.BindBuffer(GL_ELEMENT_ARRAY_BUFFER, name);
  *bytes = 0;
  gl.GetBufferParameteri64v(GL_ELEMENT_ARRAY_BUFFER, GL_BUFFER_SIZE, bytes);
  gl.BindVertexArray(0);
  cl_int status = contexts.TakeError(CL_INVALID_GL_OBJECT);
  // ... or is a GL buffer object but does not have an existing data store or the size of the buffer
  // is 0.
  if (status == CL_SUCCESS && *bytes <= 0) status = CL_INVALID_GL_OBJECT;
  if (status != CL_SUCCESS) gl.DeleteVertexArrays(1, vertex_array);
  return status;
}

}  // namespace

cl_int HoldGlBuffer(GlContexts& contexts, GLuint name, std::unique_ptr<GlHolding>* out) {
  GLuint vertex_array = 0;
  GLint64 bytes = 0;
  const cl_int status = BindToVertexArray(contexts, name, &vertex_array, &bytes);
  if (status != CL_SUCCESS) return status;
  GlDescription about;
  about.type = CL_GL_OBJECT_BUFFER;
  about.name = name;
  about.width = static_cast<size_t>(bytes);
  about.bytes = about.width;
  *out = std::make_unique<BufferHolding>(about, vertex_array, 0);
  return CL_SUCCESS;
}

cl_int HoldGlBufferOfTexture(GlContexts& contexts, GLuint buffer, GLintptr offset,
                             const GlDescription& about, std::unique_ptr<GlHolding>* out) {
  GLuint vertex_array = 0;
  GLint64 bytes = 0;
  cl_int status = BindToVertexArray(contexts, buffer, &vertex_array, &bytes);
  if (status != CL_SUCCESS) return status;
  if (offset < 0 || offset > bytes || about.bytes > static_cast<size_t>(bytes - offset)) {
    contexts.gl().DeleteVertexArrays(1, &vertex_array);
    return CL_INVALID_GL_OBJECT;
  }
  *out = std::make_unique<BufferHolding>(about, vertex_array, offset);
  return CL_SUCCESS;
}

void GlHolding::Widen(const uint8_t* packed, uint8_t* in_buffer) const {
  std::memcpy(in_buffer, packed, about_.bytes);
}

void GlHolding::Narrow(const uint8_t* packed_in_buffer, uint8_t* packed) {
  std::memcpy(packed, packed_in_buffer, about_.bytes);
}

}  // namespace sluice::client::sharing
