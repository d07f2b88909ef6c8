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

INSTANTIATE_TEST_SUITE_P(All, GlLife, testing::ValuesIn(Bindings()), BindingParamName);

}  // namespace
}  // namespace sluice::gltest
