// SPDX-License-Identifier: Apache-2.0
// GL internal formats and the OpenCL image formats that they map to: table 9.4 of the OpenCL
// extension specification, what cl_khr_gl_depth_images adds to it, and nothing else. An element has
// the same bytes on both sides, so contents travel as they are; but of depth with stencil only the
// depth goes to the worker, as floats. Thread-safe: constants.
#pragma once

#include <CL/cl.h>

#include <cstddef>

#include "client_icd/sharing/gl/gl_api.h"

namespace sluice::client::sharing {

struct GlFormat {
  GLenum internal_format;
  // How glGetTexImage, glReadPixels and glTexSubImage* are told to move elements as they are.
  GLenum transfer_format;
  GLenum transfer_type;
  cl_image_format cl;    // The application's view of it.
  size_t element_bytes;  // Of worker_cl().

  // Of the worker's image. A CL_DEPTH_STENCIL image "can only be created using the
  // clCreateFromGLTexture API" (section 9.9.1), of the driver's own GL, which the worker has not.
  // But no kernel sees the stencil, and no command of the host's may touch the image.
  cl_image_format worker_cl() const;
  bool is_depth() const;  // With stencil or without.
  bool has_stencil() const;
  bool is_integer() const;
  bool is_signed_normalised() const;
};

// Null if the table has no such internal format.
const GlFormat* FindGlFormat(GLenum internal_format);

// The format that a driver allocated for a texture that was asked for by an unsized name (GL_RGBA).
struct GlComponents {
  GLenum type = 0;  // Of the first component: GL_UNSIGNED_NORMALIZED, ...
  GLint red = 0, green = 0, blue = 0, alpha = 0;
};

// The table's row for an unsized internal format of those components: table 9.4 asks for "at least
// the number of bits/component actually allocated by OpenGL". Null if there is none.
const GlFormat* FindUnsizedGlFormat(GLenum internal_format, const GlComponents& components);

// The whole table.
const GlFormat* GlFormatsBegin();
const GlFormat* GlFormatsEnd();

}  // namespace sluice::client::sharing
