// SPDX-License-Identifier: Apache-2.0
// A call of OpenCL must leave these as they are in the application's GL: its state, its errors, and
// what is current. Owner: each test has its own. Thread: the test's.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <vector>

#include "tests/sharing/gl_fixture.h"

namespace sluice::gltest {

// State that a call might disturb: bindings, pixel storage, framebuffers, enables.
using Snapshot = std::map<GLenum, std::array<GLint, 4>>;

class WithGlState : public WithGl {
 protected:
  Snapshot Take() {
    static constexpr GLenum kNames[] = {GL_ACTIVE_TEXTURE,
                                        GL_ARRAY_BUFFER_BINDING,
                                        GL_ELEMENT_ARRAY_BUFFER_BINDING,
                                        GL_PIXEL_PACK_BUFFER_BINDING,
                                        GL_PIXEL_UNPACK_BUFFER_BINDING,
                                        GL_COPY_READ_BUFFER_BINDING,
                                        GL_COPY_WRITE_BUFFER_BINDING,
                                        GL_UNIFORM_BUFFER_BINDING,
                                        GL_TEXTURE_BINDING_2D,
                                        GL_TEXTURE_BINDING_3D,
                                        GL_TEXTURE_BINDING_2D_ARRAY,
                                        GL_TEXTURE_BINDING_CUBE_MAP,
                                        GL_DRAW_FRAMEBUFFER_BINDING,
                                        GL_READ_FRAMEBUFFER_BINDING,
                                        GL_RENDERBUFFER_BINDING,
                                        GL_VERTEX_ARRAY_BINDING,
                                        GL_CURRENT_PROGRAM,
                                        GL_PACK_ALIGNMENT,
                                        GL_PACK_ROW_LENGTH,
                                        GL_PACK_SKIP_PIXELS,
                                        GL_PACK_SKIP_ROWS,
                                        GL_UNPACK_ALIGNMENT,
                                        GL_UNPACK_ROW_LENGTH,
                                        GL_UNPACK_IMAGE_HEIGHT,
                                        GL_UNPACK_SKIP_PIXELS,
                                        GL_UNPACK_SKIP_ROWS,
                                        GL_UNPACK_SKIP_IMAGES,
                                        GL_READ_BUFFER,
                                        GL_VIEWPORT,
                                        GL_SCISSOR_BOX,
                                        GL_COLOR_CLEAR_VALUE,
                                        GL_SAMPLER_BINDING,
                                        GL_TRANSFORM_FEEDBACK_BINDING};
    Snapshot snapshot;
    for (const GLenum name : kNames) {
      std::array<GLint, 4> values = {};
      gl().GetIntegerv(name, values.data());
      snapshot[name] = values;
    }
    // Of OpenGL alone.
    for (const GLenum name : {GL_TEXTURE_BINDING_1D, GL_TEXTURE_BINDING_1D_ARRAY,
                              GL_TEXTURE_BINDING_RECTANGLE, GL_TEXTURE_BINDING_BUFFER}) {
      if (!es()) gl().GetIntegerv(name, snapshot[name].data());
    }
    for (const GLenum name : {GL_SCISSOR_TEST, GL_BLEND, GL_DEPTH_TEST, GL_CULL_FACE, GL_DITHER}) {
      snapshot[name][0] = gl().IsEnabled(name);
    }
    EXPECT_EQ(gl().GetError(), static_cast<GLenum>(GL_NO_ERROR));
    return snapshot;
  }

  // Unusual values everywhere, and an error that the application has not fetched yet.
  void Disturb(GLuint texture, GLuint buffer) {
    gl().ActiveTexture(GL_TEXTURE3);
    gl().BindTexture(GL_TEXTURE_2D, texture);
    gl().BindBuffer(GL_ARRAY_BUFFER, buffer);
    gl().BindBuffer(GL_COPY_WRITE_BUFFER, buffer);
    gl().PixelStorei(GL_PACK_ALIGNMENT, 8);
    gl().PixelStorei(GL_UNPACK_ROW_LENGTH, 77);
    gl().PixelStorei(GL_UNPACK_SKIP_PIXELS, 5);
    GLuint framebuffer = 0;
    gl().GenFramebuffers(1, &framebuffer);
    gl().BindFramebuffer(GL_FRAMEBUFFER, framebuffer);
    GLuint vertices = 0;
    gl().GenVertexArrays(1, &vertices);
    gl().BindVertexArray(vertices);
    gl().Viewport(1, 2, 3, 4);
  }

  // Fails the test if `body` fetches the error that the application has not, changes a value, or
  // what is current on this thread.
  void CheckUntouched(const char* call, const std::function<void()>& body) {
    SCOPED_TRACE(call);
    const Snapshot before = Take();
    const std::vector<const void*> current = app().Current();
    gl().BindTexture(0xBAD, 0);  // GL_INVALID_ENUM, which only the application may fetch.
    body();
    EXPECT_EQ(app().Current(), current);
    EXPECT_EQ(gl().GetError(), static_cast<GLenum>(GL_INVALID_ENUM));
    EXPECT_TRUE(Take() == before);
  }
};

}  // namespace sluice::gltest
