// SPDX-License-Identifier: Apache-2.0
// cl_khr_gl_event: events that end when a fence of GL does (OpenCL 2.2 Extension Specification,
// section 9.5).
#include <thread>

#include "tests/sharing/gl_event_fixture.h"

namespace sluice::gltest {
namespace {

class GlEvents : public WithGlEvents {
 protected:
  // Gives GL something that takes it long: each of a target's elements goes so many rounds, one
  // behind the other, so that neither many processors nor a clever driver make it short.
  void DrawLong(int rounds) {
    constexpr GLsizei kSide = 64;
    if (program_ == 0) MakeProgram();
    GLuint target = 0, framebuffer = 0, vertices = 0;
    gl().GenRenderbuffers(1, &target);
    gl().BindRenderbuffer(GL_RENDERBUFFER, target);
    gl().RenderbufferStorage(GL_RENDERBUFFER, GL_RGBA8, kSide, kSide);
    gl().GenFramebuffers(1, &framebuffer);
    gl().BindFramebuffer(GL_FRAMEBUFFER, framebuffer);
    gl().FramebufferRenderbuffer(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_RENDERBUFFER, target);
    gl().GenVertexArrays(1, &vertices);
    gl().BindVertexArray(vertices);
    gl().Viewport(0, 0, kSide, kSide);
    gl().UseProgram(program_);
    gl().Uniform1i(gl().GetUniformLocation(program_, "rounds"), rounds);
    gl().DrawArrays(GL_TRIANGLES, 0, 3);
    gl().UseProgram(0);
    gl().BindVertexArray(0);
    gl().BindFramebuffer(GL_FRAMEBUFFER, 0);
    ASSERT_EQ(gl().GetError(), static_cast<GLenum>(GL_NO_ERROR));
  }

  // Events of so many fences, each deleted at once; how many had ended when the last was made.
  int MakeEvents(int count, std::vector<Own<cl_event>>* events) {
    events->clear();
    for (int i = 0; i < count; ++i) {
      const cl_GLsync fence = Fence();
      if (i == 0) gl().Flush();
      events->push_back(
          MAKE("clCreateEventFromGLsyncKHR.behind", from_gl_(context(), fence, error)));
      gl().DeleteSync(reinterpret_cast<GLsync>(fence));
    }
    int ended = 0;
    for (const Own<cl_event>& event : *events)
      ended += conformance::StatusOf(event) == CL_COMPLETE ? 1 : 0;
    gl().Flush();
    return ended;
  }

  template <typename Work>
  static double SecondsOf(Work work) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

 private:
  void MakeProgram() {
    const std::string version =
        es() ? "#version 300 es\nprecision highp float; precision highp int;\n" : "#version 130\n";
    const std::string vertex = version +
                               "void main() {"
                               "  vec2 at = vec2(gl_VertexID / 2, gl_VertexID % 2);"
                               "  gl_Position = vec4(at * 4.0 - 1.0, 0.0, 1.0); }";
    const std::string fragment = version +
                                 "uniform int rounds; out vec4 color;"
                                 "void main() {"
                                 "  float x = gl_FragCoord.x * 0.01;"
                                 "  for (int i = 0; i < rounds; ++i) x = fract(x * 1.7 + 0.3);"
                                 "  color = vec4(x); }";
    program_ = gl().CreateProgram();
    for (const auto& [type, source] :
         {std::pair{GL_VERTEX_SHADER, &vertex}, std::pair{GL_FRAGMENT_SHADER, &fragment}}) {
      const GLuint shader = gl().CreateShader(static_cast<GLenum>(type));
      const char* const text = source->c_str();
      gl().ShaderSource(shader, 1, &text, nullptr);
      gl().CompileShader(shader);
      gl().AttachShader(program_, shader);
    }
    gl().LinkProgram(program_);
  }

  GLuint program_ = 0;
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
  constexpr int kCount = 40;
  std::vector<Own<cl_event>> events;
  const auto wait_for_all = [&events] {
    for (const Own<cl_event>& event : events)
      ASSERT_EQ(clWaitForEvents(1, event.AsList()), CL_SUCCESS);
  };
  // The calls behind nothing, and how many rounds take some times as long here.
  const double calls = SecondsOf([&] { MakeEvents(kCount, &events); });
  wait_for_all();
  int rounds = 1 << 10;
  const auto draw = [&] {
    DrawLong(rounds);
    gl().Finish();
  };
  draw();  // Compiles.
  while (SecondsOf(draw) < 4 * calls && rounds < 1 << 24) rounds *= 2;
  // Until the drawing takes longer than the calls, which others on the machine may hold up.
  int ended_early = 0;
  for (int attempt = 0; attempt < 7; ++attempt, rounds *= 2) {
    DrawLong(rounds);
    ended_early = MakeEvents(kCount, &events);
    wait_for_all();
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
