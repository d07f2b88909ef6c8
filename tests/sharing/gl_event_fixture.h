// SPDX-License-Identifier: Apache-2.0
// The start of the tests of events of fences, GL's and EGL's. Owner: each test has its own.
#pragma once

#include "tests/sharing/gl_fixture.h"

namespace sluice::gltest {

class WithGlEvents : public WithGl {
 protected:
  void SetUp() override {
    WithGl::SetUp();
    from_gl_ = Extension<decltype(&clCreateEventFromGLsyncKHR)>("clCreateEventFromGLsyncKHR");
    ASSERT_NE(from_gl_, nullptr);
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
};

}  // namespace sluice::gltest
