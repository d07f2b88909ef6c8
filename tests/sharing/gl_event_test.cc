// SPDX-License-Identifier: Apache-2.0
// cl_khr_gl_event: events that end when a fence of GL does (OpenCL 2.2 Extension Specification,
// section 9.5).
#include <thread>

#include "tests/sharing/gl_event_fixture.h"

namespace sluice::gltest {
namespace {

class GlEvents : public WithGlEvents {
 protected:
  // Gives GL something that takes it long.
  void DrawLong(int copies) {
    constexpr GLsizei kSide = 1024;
    if (target_ == 0) {
      GLuint framebuffers[2] = {}, targets[2] = {};
      gl().GenRenderbuffers(2, targets);
      gl().GenFramebuffers(2, framebuffers);
      for (int i = 0; i < 2; ++i) {
        const GLenum point = i == 0 ? GL_READ_FRAMEBUFFER : GL_DRAW_FRAMEBUFFER;
        gl().BindRenderbuffer(GL_RENDERBUFFER, targets[i]);
        gl().RenderbufferStorage(GL_RENDERBUFFER, GL_RGBA8, kSide, kSide);
        gl().BindFramebuffer(point, framebuffers[i]);
        gl().FramebufferRenderbuffer(point, GL_COLOR_ATTACHMENT0, GL_RENDERBUFFER, targets[i]);
      }
      target_ = targets[0];
    }
    for (int i = 0; i < copies; ++i) {
      gl().BlitFramebuffer(0, 0, kSide, kSide, kSide - 1, kSide - 1, i % 7, 0, GL_COLOR_BUFFER_BIT,
                           GL_LINEAR);
    }
  }

 private:
  GLuint target_ = 0;
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

// More fences than there are threads for, all behind one long drawing and deleted at once: no call
// waits for the drawing, and the events end after it.
TEST_P(GlEvents, ManyBehindOneDrawing) {
  std::vector<Own<cl_event>> events;
  int ended_early = 0;
  // Until the drawing takes longer than the calls.
  for (int copies = 16; copies <= 2048; copies *= 2) {
    DrawLong(copies);
    events.clear();
    for (int i = 0; i < 40; ++i) {
      const cl_GLsync fence = Fence();
      if (i == 0) gl().Flush();
      events.push_back(
          MAKE("clCreateEventFromGLsyncKHR.behind", from_gl_(context(), fence, error)));
      gl().DeleteSync(reinterpret_cast<GLsync>(fence));
    }
    ended_early = 0;
    for (const Own<cl_event>& event : events)
      ended_early += conformance::StatusOf(event) == CL_COMPLETE ? 1 : 0;
    gl().Flush();
    for (const Own<cl_event>& event : events)
      ASSERT_EQ(clWaitForEvents(1, event.AsList()), CL_SUCCESS);
    if (ended_early == 0) return;
  }
  FAIL() << ended_early << " of the events ended before the last was made";
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

// A release has ended before GL can go on (section 9.5.5), also if the OpenCL context has a user
// event that the release has nothing to do with.
TEST_P(GlEvents, ReleaseIsCompleteForGl) {
  const GLuint buffer = Buffer(nullptr, 4096);
  Own<cl_mem> memory = MAKE("clCreateFromGLBuffer.implicit",
                            clCreateFromGLBuffer(context(), CL_MEM_READ_WRITE, buffer, error));
  Own<cl_kernel> kernel = BuildKernel(
      "kernel void slow(global volatile uint* v) {"
      "  for (uint i = 0; i < 50000000; ++i) v[1] = i; v[0] = 7; }",
      "slow");
  conformance::SetArg(kernel, 0, memory);
  cl_int status = CL_SUCCESS;
  const Own<cl_event> unrelated(clCreateUserEvent(context(), &status));
  ASSERT_EQ(status, CL_SUCCESS);
  ASSERT_EQ(Acquire(memory), CL_SUCCESS);
  ASSERT_EQ(conformance::Launch(queue(), kernel, 1), CL_SUCCESS);
  Own<cl_event> released;
  ASSERT_EQ(Release(memory, released.Out()), CL_SUCCESS);
  EXPECT_EQ(conformance::StatusOf(released), CL_COMPLETE);
  const std::vector<uint8_t> bytes = ReadBuffer(buffer, 4096);
  EXPECT_EQ(bytes[0], 7);
  ASSERT_EQ(clSetUserEventStatus(unrelated, CL_COMPLETE), CL_SUCCESS);
}

INSTANTIATE_TEST_SUITE_P(All, GlEvents, testing::ValuesIn(Bindings()), BindingParamName);

}  // namespace
}  // namespace sluice::gltest
