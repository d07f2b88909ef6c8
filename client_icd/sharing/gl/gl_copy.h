// SPDX-License-Identifier: Apache-2.0
// Copies between a two-dimensional texture and a buffer by compute shaders, for shadows on a GPU:
// 16 MiB take 28 us on an H200, where glGetTexImage takes 569 and glTexSubImage2D 347. Where the
// processor draws, they are twenty times slower than those.
//
// A shader sees the texture through an image unit, to which it is bound once, by its name, while
// clCreateFromGLTexture runs; as with a texture unit the binding holds the texture from then on.
// A context has few image units (eight, mostly): what gets none goes without. An element is moved
// as one, two or four words whatever its format means (OpenGL 4.6, section 8.26: formats of one
// size are compatible), so that the bytes are those of glGetTexImage.
//
// Owned by GlContexts. GL thread only.
#pragma once

#include <CL/cl.h>

#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "client_icd/sharing/gl/gl_format.h"
#include "client_icd/sharing/gl/gl_share.h"

namespace sluice::client::sharing {

class GlCopier {
 public:
  // Null if there are no compute shaders: OpenGL before 4.3, and OpenGL ES, whose image units take
  // immutable textures alone.
  static std::unique_ptr<GlCopier> Make(GlContexts& contexts);

  // The format of an image unit that moves such elements as they are; 0: there is none.
  static GLenum FormatOf(const GlFormat& format);

  // Binds the level of a texture to a free image unit of the current context, whose index is
  // `context`, if it takes textures of that size.
  struct Texture {
    GLuint name = 0;
    GLint level = 0;
    GLenum format = 0;
    size_t bytes = 0;
  };
  std::optional<GLuint> Hold(GlContexts& contexts, size_t context, const Texture& texture);
  // Of the current context.
  void Release(GlContexts& contexts, size_t context, GLuint unit);

  // The level's bytes to the buffer's beginning (`pack`) or the reverse, in the context of the
  // unit, which is current. Enqueued, not finished.
  struct Copy {
    GLuint unit = 0;
    GLenum format = 0;
    GLuint buffer = 0;
    size_t width = 0;
    size_t height = 0;
    size_t bytes = 0;
    bool pack = true;
  };
  cl_int Run(GlContexts& contexts, const Copy& copy);

  // Deletes the programs, at the end. A context of the share group is current.
  void DeletePrograms();

 private:
  explicit GlCopier(const GlComputeFunctions& functions) : functions_(functions) {}
  // Made with the first use; 0 if the GL does not take it.
  GLuint Program(GLenum format, bool pack);

  const GlComputeFunctions functions_;
  GLint max_block_bytes_ = 0;
  size_t units_ = 0;                      // Of each context.
  std::vector<std::vector<bool>> taken_;  // By context.
  // At most six, of the share group: they would outlive our context.
  std::map<std::pair<GLenum, bool>, GLuint> programs_;
};

}  // namespace sluice::client::sharing
