// SPDX-License-Identifier: Apache-2.0
// Sharing by EGL must leave these alone: the application's GL, its EGL error and what is current.
#include <CL/cl_egl.h>
#include <EGL/egl.h>
#include <EGL/eglext.h>

#include <string_view>

#include "tests/sharing/gl_state_fixture.h"

namespace sluice::gltest {
namespace {

class EglState : public WithGlState {};

template <typename Function>
Function FindEgl(const char* name) {
  return reinterpret_cast<Function>(eglGetProcAddress(name));
}

// The entry points of cl_khr_egl_image and cl_khr_egl_event leave the application's GL as it was;
// also refusals, which EGL answers with an error of its own.
TEST_P(EglState, Untouched) {
  if (promise() == Promise::kNoError) GTEST_SKIP() << "it leaves an error behind";
  const auto* vendor = reinterpret_cast<const char*>(gl().GetString(GL_VENDOR));
  if (std::string_view(vendor).starts_with("NVIDIA"))
    GTEST_SKIP() << "EGLImages are refused with NVIDIA's GL (client_icd/sharing/gl/gl_share.cc)";
  const auto create = Extension<decltype(&clCreateFromEGLImageKHR)>("clCreateFromEGLImageKHR");
  const auto acquire =
      Extension<decltype(&clEnqueueAcquireEGLObjectsKHR)>("clEnqueueAcquireEGLObjectsKHR");
  const auto release =
      Extension<decltype(&clEnqueueReleaseEGLObjectsKHR)>("clEnqueueReleaseEGLObjectsKHR");
  const auto from_sync =
      Extension<decltype(&clCreateEventFromEGLSyncKHR)>("clCreateEventFromEGLSyncKHR");
  const auto make_image = FindEgl<PFNEGLCREATEIMAGEKHRPROC>("eglCreateImageKHR");
  const auto destroy_image = FindEgl<PFNEGLDESTROYIMAGEKHRPROC>("eglDestroyImageKHR");
  const auto make_sync = FindEgl<PFNEGLCREATESYNCKHRPROC>("eglCreateSyncKHR");
  const EGLDisplay display = app().egl_display();
  const Format& rgba = FormatOf(GL_RGBA8);
  const GLuint texture = Texture2D(rgba, 8, 8, Pattern(rgba, 64, 1).data());
  const EGLint attributes[] = {EGL_IMAGE_PRESERVED_KHR, EGL_TRUE, EGL_GL_TEXTURE_LEVEL_KHR, 0,
                               EGL_NONE};
  const EGLImageKHR image =
      make_image(display, app().egl_context(), EGL_GL_TEXTURE_2D_KHR,
                 reinterpret_cast<EGLClientBuffer>(static_cast<uintptr_t>(texture)), attributes);
  ASSERT_NE(image, EGL_NO_IMAGE_KHR);
  const EGLSyncKHR fence = make_sync(display, EGL_SYNC_FENCE_KHR, nullptr);
  gl().Finish();
  Disturb(texture, Buffer("12345678", 8));
  Own<cl_mem> memory;
  CheckUntouched("clCreateFromEGLImageKHR", [&] {
    memory = MAKE("clCreateFromEGLImageKHR.state",
                  create(context(), display, image, CL_MEM_READ_WRITE, nullptr, error));
  });
  ASSERT_NE(memory.get(), nullptr);
  CheckUntouched("refused", [&] {
    EXPECT_CREATE("clCreateFromEGLImageKHR.state_refused", CL_INVALID_EGL_OBJECT_KHR,
                  create(context(), display, nullptr, CL_MEM_READ_WRITE, nullptr, error));
    EXPECT_CREATE("clCreateEventFromEGLSyncKHR.state_refused", CL_INVALID_EGL_OBJECT_KHR,
                  from_sync(context(), nullptr, display, error));
  });
  const cl_mem handle = memory;
  CheckUntouched("clEnqueueAcquireEGLObjectsKHR", [&] {
    ASSERT_EQ(acquire(queue(), 1, &handle, 0, nullptr, nullptr), CL_SUCCESS);
    ASSERT_EQ(clFinish(queue()), CL_SUCCESS);
  });
  WriteImage(memory, 8, 8, 1, Pattern(rgba, 64, 2));
  CheckUntouched("clEnqueueReleaseEGLObjectsKHR", [&] {
    ASSERT_EQ(release(queue(), 1, &handle, 0, nullptr, nullptr), CL_SUCCESS);
    ASSERT_EQ(clFinish(queue()), CL_SUCCESS);
  });
  CheckUntouched("clReleaseMemObject", [&] { memory.Reset(); });
  CheckUntouched("clCreateEventFromEGLSyncKHR", [&] {
    const Own<cl_event> event =
        MAKE("clCreateEventFromEGLSyncKHR.state", from_sync(context(), fence, display, error));
    EXPECT_EQ(clWaitForEvents(1, event.AsList()), CL_SUCCESS);
  });
  EXPECT_EQ(eglGetError(), EGL_SUCCESS);
  destroy_image(display, image);
}

INSTANTIATE_TEST_SUITE_P(All, EglState, testing::Values(Binding::kEglGl, Binding::kEglEs),
                         BindingParamName);

}  // namespace
}  // namespace sluice::gltest
