// SPDX-License-Identifier: Apache-2.0
// cl_khr_egl_event: events that end when a fence of EGL does (OpenCL 2.2 Extension Specification,
// section 9.17).
#include <CL/cl_egl.h>
#include <EGL/egl.h>
#include <EGL/eglext.h>

#include "tests/sharing/gl_event_fixture.h"

namespace sluice::gltest {
namespace {

class EglEvents : public WithGlEvents {};

// As GlEvents, for fences of EGL.
TEST_P(EglEvents, Fences) {
  const auto from_egl =
      Extension<decltype(&clCreateEventFromEGLSyncKHR)>("clCreateEventFromEGLSyncKHR");
  ASSERT_NE(from_egl, nullptr);
  if (GetParam() == Binding::kGlx) {
    EXPECT_CREATE("clCreateEventFromEGLSyncKHR.glx", CL_INVALID_EGL_OBJECT_KHR,
                  from_egl(context(), reinterpret_cast<CLeglSyncKHR>(0x12340), nullptr, error));
    return;
  }
  const EGLDisplay display = app().egl_display();
  const auto create =
      reinterpret_cast<PFNEGLCREATESYNCKHRPROC>(eglGetProcAddress("eglCreateSyncKHR"));
  const auto destroy =
      reinterpret_cast<PFNEGLDESTROYSYNCKHRPROC>(eglGetProcAddress("eglDestroySyncKHR"));
  ASSERT_NE(create, nullptr);
  const std::vector<cl_uint> values(64, 9);
  const GLuint buffer = Buffer(values.data(), 256);
  Own<cl_mem> memory = MAKE("clCreateFromGLBuffer.egl_fence",
                            clCreateFromGLBuffer(context(), CL_MEM_READ_WRITE, buffer, error));
  const EGLSyncKHR fence = create(display, EGL_SYNC_FENCE_KHR, nullptr);
  ASSERT_NE(fence, EGL_NO_SYNC_KHR);
  gl().Flush();
  Own<cl_event> event =
      MAKE("clCreateEventFromEGLSyncKHR.plain", from_egl(context(), fence, display, error));
  ASSERT_NE(event.get(), nullptr);
  ExpectLinked(event, CL_COMMAND_EGL_FENCE_SYNC_OBJECT_KHR);
  const cl_mem handle = memory;
  ASSERT_EQ(clEnqueueAcquireGLObjects(queue(), 1, &handle, 1, event.AsList(), nullptr), CL_SUCCESS);
  ExpectOnlyForAcquires(event, memory);
  ASSERT_EQ(Release(memory), CL_SUCCESS);
  EXPECT_EQ(clWaitForEvents(1, event.AsList()), CL_SUCCESS);
  EXPECT_EQ(eglGetError(), EGL_SUCCESS);
  Own<cl_context> plain = NewContext();
  EXPECT_CREATE("clCreateEventFromEGLSyncKHR.plain_context", CL_INVALID_CONTEXT,
                from_egl(plain, fence, display, error));
  EXPECT_CREATE("clCreateEventFromEGLSyncKHR.null", CL_INVALID_EGL_OBJECT_KHR,
                from_egl(context(), nullptr, display, error));
  EXPECT_CREATE("clCreateEventFromEGLSyncKHR.no_display", CL_INVALID_EGL_OBJECT_KHR,
                from_egl(context(), fence, nullptr, error));
  destroy(display, fence);
  EXPECT_CREATE("clCreateEventFromEGLSyncKHR.destroyed", CL_INVALID_EGL_OBJECT_KHR,
                from_egl(context(), fence, display, error));
}

// The application may destroy an EGL fence as soon as an event is linked to it, drawn or not.
TEST_P(EglEvents, FenceDestroyedAtOnce) {
  if (GetParam() == Binding::kGlx) GTEST_SKIP() << "made by EGL";
  const EGLDisplay display = app().egl_display();
  const auto create =
      reinterpret_cast<PFNEGLCREATESYNCKHRPROC>(eglGetProcAddress("eglCreateSyncKHR"));
  const auto destroy =
      reinterpret_cast<PFNEGLDESTROYSYNCKHRPROC>(eglGetProcAddress("eglDestroySyncKHR"));
  const auto from_egl =
      Extension<decltype(&clCreateEventFromEGLSyncKHR)>("clCreateEventFromEGLSyncKHR");
  ASSERT_TRUE(create != nullptr && destroy != nullptr && from_egl != nullptr);
  const GLuint texture = Texture2D(FormatOf(GL_RGBA8), 2048, 2048, nullptr);
  GLuint framebuffer = 0;
  gl().GenFramebuffers(1, &framebuffer);
  gl().BindFramebuffer(GL_FRAMEBUFFER, framebuffer);
  gl().FramebufferTexture2D(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, texture, 0);
  gl().Viewport(0, 0, 2048, 2048);
  for (int i = 0; i < 100; ++i) {
    gl().ClearColor(static_cast<float>(i) / 100, 0, 0, 1);
    gl().Clear(GL_COLOR_BUFFER_BIT);
    const EGLSyncKHR fence = create(display, EGL_SYNC_FENCE_KHR, nullptr);
    gl().Flush();
    Own<cl_event> event =
        MAKE("clCreateEventFromEGLSyncKHR.destroyed", from_egl(context(), fence, display, error));
    ASSERT_NE(event.get(), nullptr);
    destroy(display, fence);
    ASSERT_EQ(clWaitForEvents(1, event.AsList()), CL_SUCCESS);
  }
}

INSTANTIATE_TEST_SUITE_P(All, EglEvents, testing::ValuesIn(Bindings()), BindingParamName);

}  // namespace
}  // namespace sluice::gltest
