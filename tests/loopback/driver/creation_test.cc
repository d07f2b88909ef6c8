// SPDX-License-Identifier: Apache-2.0
// Creations: which of them wait for the worker, and what becomes of a refusal that comes late.
#include <string>

#include "tests/loopback/driver/fixture.h"

namespace sluice::client {
namespace {

class CreationTest : public DriverTest {
 protected:
  void SamplerOf(cl_filter_mode filter) {
    cl_int status = 77;
    const cl_sampler sampler =
        api::clCreateSampler(context_, CL_TRUE, CL_ADDRESS_NONE, filter, &status);
    EXPECT_EQ(status, CL_SUCCESS);
    EXPECT_EQ(api::clReleaseSampler(sampler), CL_SUCCESS);
  }
  // In place of that of the fixture.
  void BeginWithin(const worker::Limits& limits) {
    End();
    DaemonHere::Get().SetLimits(limits);
    Begin();
  }
  // The driver has been asked for all that was said so far. (A queue with nothing in it is finished
  // without a question.)
  void Settle() {
    EXPECT_EQ(api::clEnqueueMarkerWithWaitList(queue_, 0, nullptr, nullptr), CL_SUCCESS);
    EXPECT_EQ(api::clFinish(queue_), CL_SUCCESS);
  }
};

// Buffers, their parts and queues are made without a question, with the application's values.
TEST_F(CreationTest, WaitsForNothing) {
  const uint64_t before = Answers();
  const cl_mem buffer = Buffer(64);
  const cl_buffer_region region = {16, 32};
  cl_int status = 77;
  const cl_mem part =
      api::clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &status);
  EXPECT_EQ(status, CL_SUCCESS);
  const cl_command_queue queue = Queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  EXPECT_EQ(Answers(), before);
  Settle();
  EXPECT_EQ(fake_->Last("clCreateBuffer").values[2], 64u);
  EXPECT_EQ(fake_->Last("clCreateSubBuffer").arrays["region"], (std::vector<uint64_t>{16, 32}));
  EXPECT_EQ(fake_->Last("clCreateCommandQueue").values[2],
            uint64_t{CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE});
  EXPECT_EQ(api::clReleaseCommandQueue(queue), CL_SUCCESS);
  EXPECT_EQ(api::clReleaseMemObject(part), CL_SUCCESS);
  EXPECT_EQ(api::clReleaseMemObject(buffer), CL_SUCCESS);
}

// A creation that a limit of the session might refuse is asked for, and refused by the call itself.
TEST_F(CreationTest, AsksNearALimit) {
  worker::Limits limits;
  limits.memory_bytes = 1000;
  BeginWithin(limits);
  uint64_t before = Answers();
  const cl_mem small = Buffer(700);
  EXPECT_EQ(Answers(), before);
  const cl_mem large = Buffer(200);
  EXPECT_EQ(Answers(), ++before);
  cl_int status = 77;
  EXPECT_EQ(api::clCreateBuffer(context_, CL_MEM_READ_WRITE, 200, nullptr, &status), nullptr);
  EXPECT_EQ(status, CL_MEM_OBJECT_ALLOCATION_FAILURE);
  for (const cl_mem one : {small, large}) EXPECT_EQ(api::clReleaseMemObject(one), CL_SUCCESS);
}

// The driver is asked for the first of each kind of sampler.
TEST_F(CreationTest, AsksForTheFirstOfAKind) {
  uint64_t before = Answers();
  SamplerOf(CL_FILTER_NEAREST);
  EXPECT_EQ(Answers(), ++before);
  SamplerOf(CL_FILTER_NEAREST);
  EXPECT_EQ(Answers(), before);
  SamplerOf(CL_FILTER_LINEAR);
  EXPECT_EQ(Answers(), ++before);
}

// A failure that comes later is reported to the context's callback, and from then on the context's
// creations wait.
TEST_F(CreationTest, LateFailureIsTold) {
  fake_->FailNext("clCreateBuffer", CL_OUT_OF_RESOURCES);
  const cl_mem failed = Buffer(64);
  AwaitError();
  EXPECT_NE(Errors()[0].find("clCreateBuffer was refused with -5"), std::string::npos)
      << Errors()[0];
  const uint64_t before = Answers();
  const cl_mem asked = Buffer(64);
  EXPECT_EQ(Answers(), before + 1);
  EXPECT_EQ(api::clEnqueueFillBuffer(queue_, asked, "x", 1, 0, 64, 0, nullptr, nullptr),
            CL_SUCCESS);
  for (const cl_mem one : {failed, asked}) EXPECT_EQ(api::clReleaseMemObject(one), CL_SUCCESS);
}

// Image formats came with the context: the driver's are told without a question.
TEST_F(CreationTest, ImageFormatsAreKnown) {
  const uint64_t before = Answers();
  cl_uint count = 0;
  ASSERT_EQ(api::clGetSupportedImageFormats(context_, CL_MEM_READ_ONLY, CL_MEM_OBJECT_IMAGE2D, 0,
                                            nullptr, &count),
            CL_SUCCESS);
  EXPECT_GT(count, 0u);
  EXPECT_EQ(Answers(), before);
}

}  // namespace
}  // namespace sluice::client
