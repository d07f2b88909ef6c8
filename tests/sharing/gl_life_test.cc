// SPDX-License-Identifier: Apache-2.0
// How things end: shared objects that are released while commands use them, contexts that are
// terminated.
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

INSTANTIATE_TEST_SUITE_P(All, GlLife, testing::ValuesIn(Bindings()), BindingParamName);

}  // namespace
}  // namespace sluice::gltest
