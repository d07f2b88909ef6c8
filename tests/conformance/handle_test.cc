// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/harness/fixtures.h"

namespace sluice::conformance {
namespace {

// A live handle of another kind in the place of the right one. The specification asks for the code
// of an invalid object; drivers that trust their callers crash, so these checks are made on Sluice
// alone.
class HandleTest : public WithProgram {
 protected:
  void SetUp() override {
    WithProgram::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    if (!TheHarness().IsSluice())
      GTEST_SKIP() << "native drivers trust the kind of a handle and crash";
    buffer_ = Buffer(64);
    kernel_ = Kernel("fill_int");
    event_ = UserEvent();
    clSetUserEventStatus(event_, CL_COMPLETE);
  }
  template <typename T, typename U>
  static T As(U handle) {
    return reinterpret_cast<T>(handle);
  }
  cl_mem buffer() const { return buffer_; }
  cl_kernel kernel() const { return kernel_; }
  cl_event event() const { return event_; }

 private:
  Own<cl_mem> buffer_;
  Own<cl_kernel> kernel_;
  Own<cl_event> event_;
};

// Queries and counts of the wrong kind are refused.
TEST_F(HandleTest, QueriesAndCounts) {
  char value[64];
  EXPECT_CL("clGetContextInfo.wrong_kind", CL_INVALID_CONTEXT,
            clGetContextInfo(As<cl_context>(queue()), CL_CONTEXT_NUM_DEVICES, sizeof(value), value,
                             nullptr));
  EXPECT_CL("clGetCommandQueueInfo.wrong_kind", CL_INVALID_COMMAND_QUEUE,
            clGetCommandQueueInfo(As<cl_command_queue>(buffer()), CL_QUEUE_CONTEXT, sizeof(value),
                                  value, nullptr));
  EXPECT_CL("clGetMemObjectInfo.wrong_kind", CL_INVALID_MEM_OBJECT,
            clGetMemObjectInfo(As<cl_mem>(context()), CL_MEM_SIZE, sizeof(value), value, nullptr));
  EXPECT_CL(
      "clGetKernelInfo.wrong_kind", CL_INVALID_KERNEL,
      clGetKernelInfo(As<cl_kernel>(program()), CL_KERNEL_NUM_ARGS, sizeof(value), value, nullptr));
  EXPECT_CL("clGetProgramInfo.wrong_kind", CL_INVALID_PROGRAM,
            clGetProgramInfo(As<cl_program>(kernel()), CL_PROGRAM_NUM_DEVICES, sizeof(value), value,
                             nullptr));
  EXPECT_CL(
      "clGetEventInfo.wrong_kind", CL_INVALID_EVENT,
      clGetEventInfo(As<cl_event>(buffer()), CL_EVENT_CONTEXT, sizeof(value), value, nullptr));
  EXPECT_CL("clGetSamplerInfo.wrong_kind", CL_INVALID_SAMPLER,
            clGetSamplerInfo(As<cl_sampler>(buffer()), CL_SAMPLER_CONTEXT, sizeof(value), value,
                             nullptr));
  EXPECT_CL(
      "clGetDeviceInfo.wrong_kind", CL_INVALID_DEVICE,
      clGetDeviceInfo(As<cl_device_id>(buffer()), CL_DEVICE_TYPE, sizeof(value), value, nullptr));
  EXPECT_CL("clGetPlatformInfo.wrong_kind", CL_INVALID_PLATFORM,
            clGetPlatformInfo(As<cl_platform_id>(buffer()), CL_PLATFORM_NAME, sizeof(value), value,
                              nullptr));
  EXPECT_CL("clRetainContext.wrong_kind", CL_INVALID_CONTEXT,
            clRetainContext(As<cl_context>(buffer())));
  EXPECT_CL("clReleaseMemObject.wrong_kind", CL_INVALID_MEM_OBJECT,
            clReleaseMemObject(As<cl_mem>(queue())));
  EXPECT_CL("clReleaseEvent.wrong_kind", CL_INVALID_EVENT, clReleaseEvent(As<cl_event>(queue())));
  EXPECT_CL("clReleaseKernel.wrong_kind", CL_INVALID_KERNEL,
            clReleaseKernel(As<cl_kernel>(queue())));
  EXPECT_CL("clReleaseProgram.wrong_kind", CL_INVALID_PROGRAM,
            clReleaseProgram(As<cl_program>(queue())));
  EXPECT_CL("clReleaseCommandQueue.wrong_kind", CL_INVALID_COMMAND_QUEUE,
            clReleaseCommandQueue(As<cl_command_queue>(buffer())));
}

// Enqueues with a handle of the wrong kind are refused, wherever it stands.
TEST_F(HandleTest, Enqueues) {
  char host[64];
  const size_t global = 1;
  const cl_event wrong_event = As<cl_event>(buffer());
  EXPECT_CL("clEnqueueReadBuffer.queue_wrong_kind", CL_INVALID_COMMAND_QUEUE,
            clEnqueueReadBuffer(As<cl_command_queue>(context()), buffer(), CL_TRUE, 0, 64, host, 0,
                                nullptr, nullptr));
  EXPECT_CL("clEnqueueReadBuffer.buffer_wrong_kind", CL_INVALID_MEM_OBJECT,
            clEnqueueReadBuffer(queue(), As<cl_mem>(kernel()), CL_TRUE, 0, 64, host, 0, nullptr,
                                nullptr));
  EXPECT_CL("clEnqueueReadBuffer.event_wrong_kind", CL_INVALID_EVENT_WAIT_LIST,
            clEnqueueReadBuffer(queue(), buffer(), CL_TRUE, 0, 64, host, 1, &wrong_event, nullptr));
  EXPECT_CL("clEnqueueNDRangeKernel.kernel_wrong_kind", CL_INVALID_KERNEL,
            clEnqueueNDRangeKernel(queue(), As<cl_kernel>(buffer()), 1, nullptr, &global, nullptr,
                                   0, nullptr, nullptr));
  EXPECT_CL("clWaitForEvents.wrong_kind", CL_INVALID_EVENT, clWaitForEvents(1, &wrong_event));
  EXPECT_CL("clSetUserEventStatus.wrong_kind", CL_INVALID_EVENT,
            clSetUserEventStatus(wrong_event, CL_COMPLETE));
  EXPECT_CL("clFinish.wrong_kind", CL_INVALID_COMMAND_QUEUE,
            clFinish(As<cl_command_queue>(event())));
  EXPECT_CL("clSetKernelArg.kernel_wrong_kind", CL_INVALID_KERNEL,
            clSetKernelArg(As<cl_kernel>(buffer()), 0, sizeof(global), &global));
}

// Creations from a handle of the wrong kind are refused.
TEST_F(HandleTest, Creations) {
  const cl_buffer_region region = {0, 16};
  EXPECT_CREATE("clCreateBuffer.wrong_kind", CL_INVALID_CONTEXT,
                clCreateBuffer(As<cl_context>(queue()), CL_MEM_READ_WRITE, 16, nullptr, error));
  EXPECT_CREATE(
      "clCreateSubBuffer.wrong_kind", CL_INVALID_MEM_OBJECT,
      clCreateSubBuffer(As<cl_mem>(queue()), 0, CL_BUFFER_CREATE_TYPE_REGION, &region, error));
  EXPECT_CREATE("clCreateKernel.wrong_kind", CL_INVALID_PROGRAM,
                clCreateKernel(As<cl_program>(kernel()), "fill_int", error));
  EXPECT_CREATE("clCreateUserEvent.wrong_kind", CL_INVALID_CONTEXT,
                clCreateUserEvent(As<cl_context>(event()), error));
  EXPECT_CREATE(
      "clCreateCommandQueueWithProperties.wrong_kind", CL_INVALID_CONTEXT,
      clCreateCommandQueueWithProperties(As<cl_context>(buffer()), device(), nullptr, error));
  EXPECT_CREATE("clCloneKernel.wrong_kind", CL_INVALID_KERNEL,
                clCloneKernel(As<cl_kernel>(program()), error));
}

}  // namespace
}  // namespace sluice::conformance
