// SPDX-License-Identifier: Apache-2.0
// How things end: shared objects that are released while commands use them, contexts that are
// terminated.
#include <CL/cl_ext.h>

#include <chrono>
#include <future>

#include "tests/sharing/gl_fixture.h"

namespace sluice::gltest {
namespace {

constexpr std::chrono::seconds kEnough(10);

class GlLife : public WithGl {};

// The memory object of a GL buffer goes by itself once its commands have ended, though nobody waits
// for anything and no further call is made.
TEST_P(GlLife, ReleasedWhilePending) {
  const GLuint buffer = Buffer(nullptr, 4096);
  app().ClearCurrent();
  Own<cl_mem> memory = MAKE("clCreateFromGLBuffer.life",
                            clCreateFromGLBuffer(context(), CL_MEM_READ_WRITE, buffer, error));
  ASSERT_NE(memory.get(), nullptr);
  // Kept if the test gives up: the callback may still come.
  auto* const gone = new std::promise<void>;
  std::future<void> went = gone->get_future();
  ASSERT_EQ(
      clSetMemObjectDestructorCallback(
          memory, [](cl_mem, void* data) { static_cast<std::promise<void>*>(data)->set_value(); },
          gone),
      CL_SUCCESS);
  ASSERT_EQ(Acquire(memory), CL_SUCCESS);
  const cl_uint value = 1;
  ASSERT_EQ(clEnqueueFillBuffer(queue(), memory, &value, 4, 0, 4096, 0, nullptr, nullptr),
            CL_SUCCESS);
  ASSERT_EQ(Release(memory), CL_SUCCESS);
  ASSERT_EQ(clFlush(queue()), CL_SUCCESS);
  memory.Reset();
  ASSERT_EQ(went.wait_for(kEnough), std::future_status::ready);
  delete gone;
  app().MakeCurrent();
}

// In a terminated context, a launch with an object that is not acquired says that it is terminated.
TEST_P(GlLife, TerminatedFirst) {
  const auto terminate = Extension<cl_int(CL_API_CALL*)(cl_context)>("clTerminateContextKHR");
  if (terminate == nullptr) GTEST_SKIP() << "no cl_khr_terminate_context";
  std::vector<cl_context_properties> list = Properties(app());
  list.insert(list.end() - 1, {CL_CONTEXT_TERMINATE_KHR, CL_TRUE});
  const cl_device_id one = device();
  Own<cl_context> doomed = MAKE("clCreateContext.gl_terminatable",
                                clCreateContext(list.data(), 1, &one, nullptr, nullptr, error));
  cl_int status = CL_SUCCESS;
  const Own<cl_command_queue> queue(
      clCreateCommandQueueWithProperties(doomed, device(), nullptr, &status));
  const Own<cl_mem> memory =
      MAKE("clCreateFromGLBuffer.doomed",
           clCreateFromGLBuffer(doomed, CL_MEM_READ_WRITE, Buffer(nullptr, 4096), error));
  const char* source = "kernel void add(global uint* v) { v[get_global_id(0)] += 1; }";
  const Own<cl_program> program(clCreateProgramWithSource(doomed, 1, &source, nullptr, &status));
  ASSERT_EQ(clBuildProgram(program, 0, nullptr, "", nullptr, nullptr), CL_SUCCESS);
  const Own<cl_kernel> kernel(clCreateKernel(program, "add", &status));
  conformance::SetArg(kernel, 0, memory);
  EXPECT_EQ(conformance::Launch(queue, kernel, 64), CL_INVALID_GL_OBJECT);
  ASSERT_EQ(terminate(doomed), CL_SUCCESS);
  EXPECT_EQ(conformance::Launch(queue, kernel, 64), CL_CONTEXT_TERMINATED_KHR);
  const cl_uint value = 1;
  EXPECT_EQ(clEnqueueFillBuffer(queue, memory, &value, 4, 0, 64, 0, nullptr, nullptr),
            CL_CONTEXT_TERMINATED_KHR);
}

// The context that was named is gone, its share group lives on, and an unrelated context has got
// its handle: what that one does concerns nothing of ours.
TEST_P(GlLife, AnotherContextHasItsHandle) {
  const Format& format = FormatOf(GL_RGBA8);
  const std::vector<uint8_t> before = Pattern(format, 64, 1);
  const GLuint texture = Texture2D(format, 8, 8, before.data());
  gl().Finish();
  const Own<cl_mem> image =
      MAKE("clCreateFromGLTexture.heir",
           clCreateFromGLTexture(context(), CL_MEM_READ_WRITE, GL_TEXTURE_2D, 0, texture, error));
  std::string why;
  const std::unique_ptr<GlApp> heir = GlApp::Make(GetParam(), &why, &app(), promise());
  ASSERT_NE(heir, nullptr) << why;
  app().MakeCurrent();
  const void* const handle = app().Current().front();
  app().ClearCurrent();
  app().DestroyContext();
  std::unique_ptr<GlApp> stranger;
  for (int i = 0; i < 40 && (stranger == nullptr || stranger->Current().front() != handle); ++i) {
    stranger.reset();
    stranger = GlApp::Make(GetParam(), &why, nullptr, promise());
    ASSERT_NE(stranger, nullptr) << why;
  }
  if (stranger->Current().front() != handle) GTEST_SKIP() << "no context got the handle";
  // One after the other, as the first failure was seen in the acquire behind it.
  for (GlApp* const current : {stranger.get(), heir.get()}) {
    current->MakeCurrent();
    ASSERT_EQ(Acquire(image), CL_SUCCESS);
    EXPECT_EQ(ReadImage(image, 8, 8, 1, 4), before);
    ASSERT_EQ(Release(image), CL_SUCCESS);
    EXPECT_EQ(clFinish(queue()), CL_SUCCESS);
    EXPECT_EQ(current->gl().GetError(), static_cast<GLenum>(GL_NO_ERROR));
  }
}

// A renderbuffer of another size than it was described with is refused, as a texture is: what of it
// fits is not mixed with what was there before.
TEST_P(GlLife, RenderbufferOfAnotherSize) {
  GLuint name = 0;
  gl().GenRenderbuffers(1, &name);
  gl().BindRenderbuffer(GL_RENDERBUFFER, name);
  gl().RenderbufferStorage(GL_RENDERBUFFER, GL_RGBA8, 16, 16);
  const Own<cl_mem> image =
      MAKE("clCreateFromGLRenderbuffer.resized",
           clCreateFromGLRenderbuffer(context(), CL_MEM_READ_WRITE, name, error));
  const std::pair<GLsizei, cl_int> rows[] = {
      {4, CL_INVALID_GL_OBJECT}, {32, CL_INVALID_GL_OBJECT}, {16, CL_COMPLETE}};
  for (const auto& [size, wanted] : rows) {
    gl().RenderbufferStorage(GL_RENDERBUFFER, GL_RGBA8, size, size);
    gl().Finish();
    Own<cl_event> acquired;
    ASSERT_EQ(Acquire(image, acquired.Out()), CL_SUCCESS);
    const cl_event one = acquired;
    clWaitForEvents(1, &one);
    cl_int status = 1;
    EXPECT_EQ(clGetEventInfo(acquired, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status,
                             nullptr),
              CL_SUCCESS);
    EXPECT_EQ(status, wanted) << size;
    Release(image);
    clFinish(queue());
    MakeQueue();  // Whatever failed in it.
  }
}

INSTANTIATE_TEST_SUITE_P(All, GlLife, testing::ValuesIn(Bindings()), BindingParamName);

}  // namespace
}  // namespace sluice::gltest
