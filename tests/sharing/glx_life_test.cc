// SPDX-License-Identifier: Apache-2.0
// Displays of GLX: one that closes before OpenCL's objects are released, and one that is the wrong
// one.
#include <chrono>
#include <memory>
#include <string>

#include "tests/sharing/gl_fixture.h"

namespace sluice::gltest {
namespace {

class GlxLife : public WithGl {
 protected:
  Own<cl_mem> Share(GLuint buffer) {
    return MAKE("clCreateFromGLBuffer.life",
                clCreateFromGLBuffer(context(), CL_MEM_READ_WRITE, buffer, error));
  }
  cl_int Fill(cl_mem memory) {
    const cl_uint value = 1;
    return clEnqueueFillBuffer(queue(), memory, &value, 4, 0, 4096, 0, nullptr, nullptr);
  }
  template <typename Call>
  static double SecondsOf(Call call) {
    const auto begin = std::chrono::steady_clock::now();
    call();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
};

// OpenCL's objects may outlive the display that their GL objects came from: closing it takes no
// time, what needs GL is refused or fails, and the releases work.
TEST_P(GlxLife, DisplayClosedFirst) {
  Own<cl_mem> idle = Share(Buffer(nullptr, 4096));
  Own<cl_mem> acquired = Share(Buffer(nullptr, 4096));
  const auto from_gl =
      Extension<decltype(&clCreateEventFromGLsyncKHR)>("clCreateEventFromGLsyncKHR");
  const auto fence = reinterpret_cast<cl_GLsync>(gl().FenceSync(GL_SYNC_GPU_COMMANDS_COMPLETE, 0));
  gl().Flush();
  Own<cl_event> linked =
      MAKE("clCreateEventFromGLsyncKHR.closed", from_gl(context(), fence, error));
  ASSERT_EQ(clWaitForEvents(1, linked.AsList()), CL_SUCCESS);
  ASSERT_EQ(Acquire(idle), CL_SUCCESS);
  ASSERT_EQ(Release(idle), CL_SUCCESS);
  ASSERT_EQ(Acquire(acquired), CL_SUCCESS);
  ASSERT_EQ(Fill(acquired), CL_SUCCESS);
  ASSERT_EQ(clFinish(queue()), CL_SUCCESS);
  EXPECT_LT(SecondsOf([this] { CloseApp(); }), 1.5);

  EXPECT_EQ(Acquire(idle), CL_INVALID_GL_OBJECT);
  Own<cl_event> released;
  ASSERT_EQ(Release(acquired, released.Out()), CL_SUCCESS);
  EXPECT_EQ(clWaitForEvents(1, released.AsList()), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
  EXPECT_EQ(conformance::StatusOf(released), CL_INVALID_GL_OBJECT);
  GoOn();  // Its event has told the error.
  EXPECT_CREATE("clCreateFromGLBuffer.closed", CL_INVALID_GL_OBJECT,
                clCreateFromGLBuffer(context(), CL_MEM_READ_WRITE, 1, error));
  EXPECT_CREATE("clCreateEventFromGLsyncKHR.gone", CL_INVALID_GL_OBJECT,
                from_gl(context(), fence, error));
}

// A command that is under way when the display closes fails once its turn comes.
TEST_P(GlxLife, DisplayClosedWhilePending) {
  Own<cl_mem> memory = Share(Buffer(nullptr, 4096));
  app().ClearCurrent();
  cl_int status = CL_SUCCESS;
  Own<cl_event> gate(clCreateUserEvent(context(), &status));
  const cl_mem handle = memory;
  Own<cl_event> acquired, released;
  ASSERT_EQ(clEnqueueAcquireGLObjects(queue(), 1, &handle, 1, gate.AsList(), acquired.Out()),
            CL_SUCCESS);
  ASSERT_EQ(Release(memory, released.Out()), CL_SUCCESS);
  memory.Reset();
  EXPECT_LT(SecondsOf([this] { CloseApp(); }), 1.5);
  ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
  EXPECT_EQ(clWaitForEvents(1, released.AsList()), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
  EXPECT_LT(conformance::StatusOf(acquired), 0);
  EXPECT_LT(conformance::StatusOf(released), 0);
  // The acquire's late error; or that of a queue which fails what comes behind with the very code.
  EXPECT_EQ(clFinish(queue()), CL_INVALID_GL_OBJECT);
}

// A display may close while a thread of ours lets go of the last that was made on it.
TEST_P(GlxLife, DisplayClosedWhileLettingGo) {
  const auto from_gl =
      Extension<decltype(&clCreateEventFromGLsyncKHR)>("clCreateEventFromGLsyncKHR");
  for (int i = 0; i < 100; ++i) {
    std::string why;
    std::unique_ptr<GlApp> second = GlApp::Make(GetParam(), &why);
    ASSERT_NE(second, nullptr) << why;
    Own<cl_context> made = NewGlContext(*second);
    ASSERT_NE(made.get(), nullptr);
    // Its waiter is the last to know the context.
    EXPECT_CREATE("clCreateEventFromGLsyncKHR.letting_go", CL_INVALID_GL_OBJECT,
                  from_gl(made, nullptr, error));
    made.Reset();
    second.reset();
  }
  app().MakeCurrent();
}

// Section 9.3.4: CL_GLX_DISPLAY_KHR is "the display used to create the OpenGL context". Another one
// of the same server does not identify it.
TEST_P(GlxLife, DisplayOfAnother) {
  std::string why;
  std::unique_ptr<GlApp> second = GlApp::Make(GetParam(), &why);
  ASSERT_NE(second, nullptr) << why;
  const auto mixed = [this](GlApp& of_context, GlApp& of_display) {
    std::vector<cl_context_properties> list = of_context.Properties();
    EXPECT_EQ(list.at(2), CL_GLX_DISPLAY_KHR);
    list.at(3) = of_display.Properties().at(3);
    list.insert(list.end(),
                {CL_CONTEXT_PLATFORM, reinterpret_cast<cl_context_properties>(platform()), 0});
    return list;
  };
  const auto query = Extension<decltype(&clGetGLContextInfoKHR)>("clGetGLContextInfoKHR");
  const cl_device_id one = device();
  for (const auto& list : {mixed(app(), *second), mixed(*second, app())}) {
    EXPECT_CREATE("clCreateContext.other_display", CL_INVALID_GL_SHAREGROUP_REFERENCE_KHR,
                  clCreateContext(list.data(), 1, &one, nullptr, nullptr, error));
    size_t bytes = 0;
    EXPECT_CL("clGetGLContextInfoKHR.other_display", CL_INVALID_GL_SHAREGROUP_REFERENCE_KHR,
              query(list.data(), CL_DEVICES_FOR_GL_CONTEXT_KHR, 0, nullptr, &bytes));
  }
  // Each still goes with its own.
  EXPECT_NE(NewGlContext(*second).get(), nullptr);
  EXPECT_NE(NewGlContext(app()).get(), nullptr);
  second.reset();
  app().MakeCurrent();
}

INSTANTIATE_TEST_SUITE_P(All, GlxLife, testing::Values(Binding::kGlx, Binding::kGlxVisual),
                         BindingParamName);

}  // namespace
}  // namespace sluice::gltest
