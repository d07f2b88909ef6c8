// SPDX-License-Identifier: Apache-2.0
// cl_khr_gl_event and cl_khr_egl_event: events that end when a fence of GL or EGL does (OpenCL 2.2
// Extension Specification, sections 9.5 and 9.17).
#include <CL/cl_egl.h>

#include <cstring>
#include <thread>

#include "tests/sharing/gl_fixture.h"

namespace sluice::gltest {
namespace {

class GlEvents : public WithGl {
 protected:
  void SetUp() override {
    WithGl::SetUp();
    from_gl_ = Extension<decltype(&clCreateEventFromGLsyncKHR)>("clCreateEventFromGLsyncKHR");
    from_egl_ = Extension<decltype(&clCreateEventFromEGLSyncKHR)>("clCreateEventFromEGLSyncKHR");
    ASSERT_NE(from_gl_, nullptr);
    ASSERT_NE(from_egl_, nullptr);
  }

  cl_GLsync Fence() {
    return reinterpret_cast<cl_GLsync>(gl().FenceSync(GL_SYNC_GPU_COMMANDS_COMPLETE, 0));
  }
  void ExpectLinked(cl_event event, cl_command_type type) {
    cl_command_queue queue = this->queue();
    EXPECT_EQ(clGetEventInfo(event, CL_EVENT_COMMAND_QUEUE, sizeof(queue), &queue, nullptr),
              CL_SUCCESS);
    EXPECT_EQ(queue, nullptr);
    cl_command_type seen = 0;
    EXPECT_EQ(clGetEventInfo(event, CL_EVENT_COMMAND_TYPE, sizeof(seen), &seen, nullptr),
              CL_SUCCESS);
    EXPECT_EQ(seen, type);
    const cl_int status = conformance::StatusOf(event);
    EXPECT_TRUE(status == CL_SUBMITTED || status == CL_COMPLETE) << status;
    EXPECT_EQ(clSetUserEventStatus(event, CL_COMPLETE), CL_INVALID_EVENT);
  }
  // Every enqueue but an acquire refuses the event.
  void ExpectOnlyForAcquires(cl_event event, cl_mem memory) {
    EXPECT_EQ(clEnqueueMarkerWithWaitList(queue(), 1, &event, nullptr), CL_INVALID_EVENT);
    const cl_uint zero = 0;
    EXPECT_EQ(clEnqueueFillBuffer(queue(), memory, &zero, 4, 0, 4, 1, &event, nullptr),
              CL_INVALID_EVENT);
    EXPECT_EQ(clEnqueueReleaseGLObjects(queue(), 1, &memory, 1, &event, nullptr), CL_INVALID_EVENT);
  }

  decltype(&clCreateEventFromGLsyncKHR) from_gl_ = nullptr;
  decltype(&clCreateEventFromEGLSyncKHR) from_egl_ = nullptr;
};

// A fence of another thread's context orders what that thread wrote before an acquire.
TEST_P(GlEvents, FenceGatesAcquire) {
  const std::vector<cl_uint> values(1024, 3);
  const GLuint buffer = Buffer(nullptr, 4096);
  Own<cl_mem> memory = MAKE("clCreateFromGLBuffer.fence",
                            clCreateFromGLBuffer(context(), CL_MEM_READ_WRITE, buffer, error));
  gl().BindBuffer(GL_ARRAY_BUFFER, buffer);
  gl().BufferSubData(GL_ARRAY_BUFFER, 0, 4096, values.data());
  gl().BindBuffer(GL_ARRAY_BUFFER, 0);
  const cl_GLsync fence = Fence();
  Own<cl_event> event = MAKE("clCreateEventFromGLsyncKHR.plain", from_gl_(context(), fence, error));
  ASSERT_NE(event.get(), nullptr);
  ExpectLinked(event, CL_COMMAND_GL_FENCE_SYNC_OBJECT_KHR);
  gl().Flush();
  // "Creating a linked event object also places a reference on the linked GL sync object."
  gl().DeleteSync(reinterpret_cast<GLsync>(fence));
  // Acquired by a thread without a GL context: explicit synchronisation alone.
  std::thread([&] {
    const cl_mem handle = memory;
    EXPECT_EQ(clEnqueueAcquireGLObjects(queue(), 1, &handle, 1, event.AsList(), nullptr),
              CL_SUCCESS);
    std::vector<cl_uint> seen(1024);
    EXPECT_EQ(
        clEnqueueReadBuffer(queue(), memory, CL_TRUE, 0, 4096, seen.data(), 0, nullptr, nullptr),
        CL_SUCCESS);
    EXPECT_EQ(seen, values);
    EXPECT_EQ(clEnqueueReleaseGLObjects(queue(), 1, &handle, 0, nullptr, nullptr), CL_SUCCESS);
  }).join();
  EXPECT_EQ(clWaitForEvents(1, event.AsList()), CL_SUCCESS);
  EXPECT_EQ(conformance::StatusOf(event), CL_COMPLETE);
}

// Many fences at once end, whatever order they are asked for in; what is no fence is refused.
TEST_P(GlEvents, ManyAndNone) {
  std::vector<Own<cl_event>> events;
  for (int i = 0; i < 40; ++i) {
    events.push_back(MAKE("clCreateEventFromGLsyncKHR.many", from_gl_(context(), Fence(), error)));
  }
  gl().Flush();
  for (size_t i = events.size(); i > 0; --i) {
    EXPECT_EQ(clWaitForEvents(1, events[i - 1].AsList()), CL_SUCCESS);
  }
  EXPECT_CREATE("clCreateEventFromGLsyncKHR.null", CL_INVALID_GL_OBJECT,
                from_gl_(context(), nullptr, error));
  EXPECT_CREATE("clCreateEventFromGLsyncKHR.unknown", CL_INVALID_GL_OBJECT,
                from_gl_(context(), reinterpret_cast<cl_GLsync>(0x12340), error));
  EXPECT_CREATE("clCreateEventFromGLsyncKHR.null_context", CL_INVALID_CONTEXT,
                from_gl_(nullptr, Fence(), error));
  Own<cl_context> plain = NewContext();
  EXPECT_CREATE("clCreateEventFromGLsyncKHR.plain_context", CL_INVALID_CONTEXT,
                from_gl_(plain, Fence(), error));
}

// "Passing such events to any other CL API that enqueues commands will generate a CL_INVALID_EVENT
// error."
TEST_P(GlEvents, OnlyForAcquires) {
  Own<cl_mem> memory = MAKE("clCreateFromGLBuffer.linked",
                            clCreateFromGLBuffer(context(), 0, Buffer("1234", 4), error));
  Own<cl_event> event =
      MAKE("clCreateEventFromGLsyncKHR.only", from_gl_(context(), Fence(), error));
  gl().Flush();
  ASSERT_EQ(Acquire(memory), CL_SUCCESS);
  ExpectOnlyForAcquires(event, memory);
  ASSERT_EQ(Release(memory), CL_SUCCESS);
  EXPECT_EQ(clWaitForEvents(1, event.AsList()), CL_SUCCESS);
}

// The same for fences of EGL.
TEST_P(GlEvents, EglFences) {
  if (GetParam() == Binding::kGlx) {
    EXPECT_CREATE("clCreateEventFromEGLSyncKHR.glx", CL_INVALID_EGL_OBJECT_KHR,
                  from_egl_(context(), reinterpret_cast<CLeglSyncKHR>(0x12340), nullptr, error));
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
      MAKE("clCreateEventFromEGLSyncKHR.plain", from_egl_(context(), fence, display, error));
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
                from_egl_(plain, fence, display, error));
  EXPECT_CREATE("clCreateEventFromEGLSyncKHR.null", CL_INVALID_EGL_OBJECT_KHR,
                from_egl_(context(), nullptr, display, error));
  EXPECT_CREATE("clCreateEventFromEGLSyncKHR.no_display", CL_INVALID_EGL_OBJECT_KHR,
                from_egl_(context(), fence, nullptr, error));
  destroy(display, fence);
  EXPECT_CREATE("clCreateEventFromEGLSyncKHR.destroyed", CL_INVALID_EGL_OBJECT_KHR,
                from_egl_(context(), fence, display, error));
}

INSTANTIATE_TEST_SUITE_P(All, GlEvents,
                         testing::Values(Binding::kEglGl, Binding::kEglEs, Binding::kGlx),
                         BindingParamName);

}  // namespace
}  // namespace sluice::gltest
