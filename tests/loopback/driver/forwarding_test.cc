// SPDX-License-Identifier: Apache-2.0
// The application's values reach the driver of the GPU, and the driver's bytes and codes come back:
// the real driver library over the real worker.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/loopback/driver/fixture.h"

namespace sluice::client {
namespace {

// Some bytes, each unlike its neighbours, other for each seed.
std::string Bytes(size_t size, uint32_t seed) {
  std::string bytes(size, '\0');
  uint32_t state = seed * 2654435761U + 1;
  for (char& byte : bytes) {
    state = state * 1664525U + 1013904223U;
    byte = static_cast<char>(state >> 24);
  }
  return bytes;
}

// A kernel with all of its arguments set: (global int*, int, local int*, image2d_t, sampler_t).
class LaunchTest : public DriverTest {
 protected:
  void SetUp() override {
    DriverTest::SetUp();
    program_ = Program();
    ASSERT_EQ(api::clBuildProgram(program_, 0, nullptr, "", nullptr, nullptr), CL_SUCCESS);
    cl_int status = 77;
    kernel_ = api::clCreateKernel(program_, "k1", &status);
    ASSERT_EQ(status, CL_SUCCESS);
    buffer_ = Buffer(64);
    const cl_image_format format = {CL_RGBA, CL_UNORM_INT8};
    cl_image_desc desc = {};
    desc.image_type = CL_MEM_OBJECT_IMAGE2D;
    desc.image_width = desc.image_height = 4;
    image_ = api::clCreateImage(context_, CL_MEM_READ_ONLY, &format, &desc, nullptr, &status);
    ASSERT_EQ(status, CL_SUCCESS);
    sampler_ =
        api::clCreateSampler(context_, CL_TRUE, CL_ADDRESS_CLAMP, CL_FILTER_NEAREST, &status);
    ASSERT_EQ(status, CL_SUCCESS);
    EXPECT_EQ(api::clSetKernelArg(kernel_, 0, sizeof(buffer_), &buffer_), CL_SUCCESS);
    EXPECT_EQ(api::clSetKernelArg(kernel_, 1, sizeof(number_), &number_), CL_SUCCESS);
    EXPECT_EQ(api::clSetKernelArg(kernel_, 2, 256, nullptr), CL_SUCCESS);
    EXPECT_EQ(api::clSetKernelArg(kernel_, 3, sizeof(image_), &image_), CL_SUCCESS);
    EXPECT_EQ(api::clSetKernelArg(kernel_, 4, sizeof(sampler_), &sampler_), CL_SUCCESS);
    fake_->ClearCalls();
  }
  void TearDown() override {
    fake_->ReleaseCommands();
    EXPECT_EQ(api::clReleaseKernel(kernel_), CL_SUCCESS);
    EXPECT_EQ(api::clReleaseProgram(program_), CL_SUCCESS);
    EXPECT_EQ(api::clReleaseSampler(sampler_), CL_SUCCESS);
    EXPECT_EQ(api::clReleaseMemObject(image_), CL_SUCCESS);
    EXPECT_EQ(api::clReleaseMemObject(buffer_), CL_SUCCESS);
    DriverTest::TearDown();
  }
  cl_int Launch(const std::vector<cl_event>& waits = {}, cl_event* event = nullptr) {
    const size_t global = 16;
    return api::clEnqueueNDRangeKernel(queue_, kernel_, 1, nullptr, &global, nullptr,
                                       static_cast<cl_uint>(waits.size()),
                                       waits.empty() ? nullptr : waits.data(), event);
  }

  const cl_int number_ = 42;
  cl_program program_ = nullptr;
  cl_kernel kernel_ = nullptr;
  cl_mem buffer_ = nullptr, image_ = nullptr;
  cl_sampler sampler_ = nullptr;
};

// The driver sees the offsets and sizes that the application passed.
TEST_F(LaunchTest, Sizes) {
  const size_t offset[] = {1, 2}, global[] = {16, 8}, local[] = {4, 2};
  ASSERT_EQ(
      api::clEnqueueNDRangeKernel(queue_, kernel_, 2, offset, global, local, 0, nullptr, nullptr),
      CL_SUCCESS);
  ASSERT_EQ(api::clFinish(queue_), CL_SUCCESS);
  fake::RecordedCall call = fake_->Last("clEnqueueNDRangeKernel");
  EXPECT_EQ(call.values[2], 2u);
  EXPECT_EQ(call.arrays["offset"], (std::vector<uint64_t>{1, 2}));
  EXPECT_EQ(call.arrays["global"], (std::vector<uint64_t>{16, 8}));
  EXPECT_EQ(call.arrays["local"], (std::vector<uint64_t>{4, 2}));
}

// Values that the application left to the driver are left to it: no offset, no local size.
TEST_F(LaunchTest, WhatIsLeftOut) {
  ASSERT_EQ(Launch(), CL_SUCCESS);
  ASSERT_EQ(api::clFinish(queue_), CL_SUCCESS);
  fake::RecordedCall call = fake_->Last("clEnqueueNDRangeKernel");
  EXPECT_EQ(call.arrays.count("offset"), 0u);
  EXPECT_EQ(call.arrays.count("local"), 0u);
}

// Arguments are set before the launch, each as what it is, and once.
TEST_F(LaunchTest, Arguments) {
  ASSERT_EQ(Launch(), CL_SUCCESS);
  ASSERT_EQ(Launch(), CL_SUCCESS);
  ASSERT_EQ(api::clFinish(queue_), CL_SUCCESS);
  const std::vector<fake::RecordedCall> calls = fake_->Calls("clSetKernelArg");
  ASSERT_EQ(calls.size(), 5u);
  const auto set = [&](uint64_t index) {
    const auto it = std::find_if(calls.begin(), calls.end(), [&](const fake::RecordedCall& call) {
      return call.values[1] == index;
    });
    return it == calls.end() ? fake::RecordedCall{} : *it;
  };
  EXPECT_EQ(set(1).bytes, std::string(reinterpret_cast<const char*>(&number_), sizeof(number_)));
  EXPECT_EQ(set(2).values[2], 256u);
  EXPECT_EQ(set(2).values[3], 0u);  // Null.
  EXPECT_EQ(fake_->Count("clEnqueueNDRangeKernel"), 2u);
}

// A command that waits for a user event runs when the application sets that, and not before.
TEST_F(LaunchTest, WaitsForAUserEvent) {
  cl_int status = 77;
  const cl_event user = api::clCreateUserEvent(context_, &status);
  ASSERT_EQ(status, CL_SUCCESS);
  cl_event event = nullptr;
  ASSERT_EQ(Launch({user}, &event), CL_SUCCESS);
  EXPECT_GT(StatusOf(event), CL_COMPLETE);
  EXPECT_EQ(api::clSetUserEventStatus(user, CL_COMPLETE), CL_SUCCESS);
  EXPECT_EQ(api::clWaitForEvents(1, &event), CL_SUCCESS);
  EXPECT_EQ(StatusOf(event), CL_COMPLETE);
  EXPECT_EQ(api::clReleaseEvent(event), CL_SUCCESS);
  EXPECT_EQ(api::clReleaseEvent(user), CL_SUCCESS);
}

// One that waits for an event which failed does not run, and fails with the specification's code.
TEST_F(LaunchTest, FailsByItsList) {
  cl_int status = 77;
  const cl_event user = api::clCreateUserEvent(context_, &status);
  cl_event event = nullptr;
  ASSERT_EQ(Launch({user}, &event), CL_SUCCESS);
  EXPECT_EQ(api::clSetUserEventStatus(user, -1), CL_SUCCESS);
  EXPECT_EQ(api::clWaitForEvents(1, &event), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
  EXPECT_LT(StatusOf(event), 0);
  EXPECT_EQ(api::clReleaseEvent(event), CL_SUCCESS);
  EXPECT_EQ(api::clReleaseEvent(user), CL_SUCCESS);
}

// A refusal of the driver's after the call has returned ends the launch's event with its code.
TEST_F(LaunchTest, LateRefusal) {
  fake_->FailNext("clEnqueueNDRangeKernel", CL_OUT_OF_RESOURCES);
  cl_event event = nullptr;
  ASSERT_EQ(Launch({}, &event), CL_SUCCESS);
  EXPECT_EQ(api::clWaitForEvents(1, &event), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
  EXPECT_EQ(StatusOf(event), CL_OUT_OF_RESOURCES);
  EXPECT_EQ(api::clReleaseEvent(event), CL_SUCCESS);
}

// A wait for an event that tells its own refusal leaves that of a launch without one to clFinish:
// when both have the same code, and when the event's came first.
TEST_F(LaunchTest, LateRefusalWithoutAnEvent) {
  fake_->FailNext("clEnqueueNDRangeKernel", CL_OUT_OF_RESOURCES);
  ASSERT_EQ(Launch(), CL_SUCCESS);
  EXPECT_EQ(api::clFinish(queue_), CL_OUT_OF_RESOURCES);
  EXPECT_EQ(api::clFinish(queue_), CL_SUCCESS);

  fake_->FailNext("clEnqueueNDRangeKernel", CL_OUT_OF_RESOURCES);
  fake_->FailNext("clEnqueueNDRangeKernel", CL_OUT_OF_RESOURCES);
  cl_event event = nullptr;
  ASSERT_EQ(Launch(), CL_SUCCESS);
  ASSERT_EQ(Launch({}, &event), CL_SUCCESS);
  EXPECT_EQ(api::clWaitForEvents(1, &event), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
  EXPECT_EQ(api::clFinish(queue_), CL_OUT_OF_RESOURCES);
  EXPECT_EQ(api::clFinish(queue_), CL_SUCCESS);
  EXPECT_EQ(api::clReleaseEvent(event), CL_SUCCESS);

  fake_->FailNext("clEnqueueNDRangeKernel", CL_OUT_OF_RESOURCES);
  fake_->FailNext("clEnqueueNDRangeKernel", CL_OUT_OF_HOST_MEMORY);
  cl_event last = nullptr;
  ASSERT_EQ(Launch({}, &event), CL_SUCCESS);
  ASSERT_EQ(Launch(), CL_SUCCESS);
  ASSERT_EQ(Launch({}, &last), CL_SUCCESS);
  while (StatusOf(last) > CL_COMPLETE) std::this_thread::yield();  // Both have been told.
  EXPECT_EQ(api::clWaitForEvents(1, &event), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
  EXPECT_EQ(api::clFinish(queue_), CL_OUT_OF_HOST_MEMORY);
  EXPECT_EQ(api::clFinish(queue_), CL_SUCCESS);
  EXPECT_EQ(api::clReleaseEvent(event), CL_SUCCESS);
  EXPECT_EQ(api::clReleaseEvent(last), CL_SUCCESS);
}

class TransferTest : public DriverTest, public ::testing::WithParamInterface<size_t> {
 protected:
  void SetUp() override {
    DriverTest::SetUp();
    bytes_ = Bytes(GetParam(), 1);
    buffer_ = Buffer(bytes_.size());
  }
  void TearDown() override {
    EXPECT_EQ(api::clReleaseMemObject(buffer_), CL_SUCCESS);
    DriverTest::TearDown();
  }

  std::string bytes_;
  cl_mem buffer_ = nullptr;
};

// Bytes that are written are read again, by whichever way their size takes.
TEST_P(TransferTest, WriteAndRead) {
  ASSERT_EQ(api::clEnqueueWriteBuffer(queue_, buffer_, CL_FALSE, 0, bytes_.size(), bytes_.data(), 0,
                                      nullptr, nullptr),
            CL_SUCCESS);
  EXPECT_TRUE(Read(buffer_, bytes_.size()) == bytes_);
}

// So are those that the buffer is made with, and a part in its middle.
TEST_P(TransferTest, InitialBytesAndAPart) {
  const cl_mem made =
      Buffer(bytes_.size(), CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, bytes_.data());
  const std::string part = Bytes(bytes_.size() / 2, 2);
  ASSERT_EQ(api::clEnqueueWriteBuffer(queue_, made, CL_TRUE, 3, part.size(), part.data(), 0,
                                      nullptr, nullptr),
            CL_SUCCESS);
  std::copy(part.begin(), part.end(), bytes_.begin() + 3);
  EXPECT_TRUE(Read(made, bytes_.size()) == bytes_);
  EXPECT_EQ(api::clReleaseMemObject(made), CL_SUCCESS);
}

// And those that the application writes where a buffer is mapped.
TEST_P(TransferTest, Map) {
  cl_int status = 77;
  void* const mapped = api::clEnqueueMapBuffer(queue_, buffer_, CL_TRUE, CL_MAP_WRITE, 0,
                                               bytes_.size(), 0, nullptr, nullptr, &status);
  ASSERT_EQ(status, CL_SUCCESS);
  std::copy(bytes_.begin(), bytes_.end(), static_cast<char*>(mapped));
  ASSERT_EQ(api::clEnqueueUnmapMemObject(queue_, buffer_, mapped, 0, nullptr, nullptr), CL_SUCCESS);
  EXPECT_TRUE(Read(buffer_, bytes_.size()) == bytes_);
}

INSTANTIATE_TEST_SUITE_P(Sizes, TransferTest, ::testing::Values(64, 4096, 70'000, 9'000'001));

// The pattern, the place and the size of a fill are the application's.
TEST_F(DriverTest, Fill) {
  const cl_mem buffer = Buffer(64);
  ASSERT_EQ(api::clEnqueueFillBuffer(queue_, buffer, "abcd", 4, 8, 16, 0, nullptr, nullptr),
            CL_SUCCESS);
  const std::string bytes = Read(buffer, 64);
  EXPECT_EQ(bytes.substr(8, 16), "abcdabcdabcdabcd");
  EXPECT_EQ(bytes[7], '\0');  // Nobody's bytes: zeros.
  EXPECT_EQ(bytes[24], '\0');
  EXPECT_EQ(api::clReleaseMemObject(buffer), CL_SUCCESS);
}

// So are the origins, the region and the pitches of a copy of a rectangle.
TEST_F(DriverTest, CopyRect) {
  const cl_mem from = Buffer(256), to = Buffer(512);
  const size_t from_origin[] = {1, 2, 0}, to_origin[] = {3, 1, 1}, region[] = {4, 3, 1};
  ASSERT_EQ(api::clEnqueueCopyBufferRect(queue_, from, to, from_origin, to_origin, region, 16, 128,
                                         32, 256, 0, nullptr, nullptr),
            CL_SUCCESS);
  ASSERT_EQ(api::clFinish(queue_), CL_SUCCESS);
  fake::RecordedCall call = fake_->Last("clEnqueueCopyBufferRect");
  EXPECT_EQ(call.arrays["from_origin"], (std::vector<uint64_t>{1, 2, 0}));
  EXPECT_EQ(call.arrays["to_origin"], (std::vector<uint64_t>{3, 1, 1}));
  EXPECT_EQ(call.arrays["region"], (std::vector<uint64_t>{4, 3, 1}));
  EXPECT_EQ(call.arrays["pitches"], (std::vector<uint64_t>{16, 128, 32, 256}));
  EXPECT_EQ(api::clReleaseMemObject(from), CL_SUCCESS);
  EXPECT_EQ(api::clReleaseMemObject(to), CL_SUCCESS);
}

// A queue out of order is one to the driver, too, and its markers end after their lists.
TEST_F(DriverTest, QueueOutOfOrder) {
  const cl_command_queue queue = Queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  cl_int status = 77;
  const cl_event user = api::clCreateUserEvent(context_, &status);
  cl_event behind = nullptr, alone = nullptr;
  ASSERT_EQ(api::clEnqueueMarkerWithWaitList(queue, 1, &user, &behind), CL_SUCCESS);
  const cl_mem buffer = Buffer(64);
  ASSERT_EQ(api::clEnqueueFillBuffer(queue, buffer, "x", 1, 0, 64, 0, nullptr, &alone), CL_SUCCESS);
  EXPECT_EQ(api::clWaitForEvents(1, &alone), CL_SUCCESS);  // Overtakes the marker.
  EXPECT_GT(StatusOf(behind), CL_COMPLETE);
  EXPECT_EQ(api::clSetUserEventStatus(user, CL_COMPLETE), CL_SUCCESS);
  EXPECT_EQ(api::clWaitForEvents(1, &behind), CL_SUCCESS);
  for (const cl_event event : {user, behind, alone})
    EXPECT_EQ(api::clReleaseEvent(event), CL_SUCCESS);
  EXPECT_EQ(api::clReleaseMemObject(buffer), CL_SUCCESS);
  EXPECT_EQ(api::clReleaseCommandQueue(queue), CL_SUCCESS);
}

// Once the worker has gone every call has an answer, and releases still work (wlroots: "inert").
TEST_F(DriverTest, LostWorker) {
  const cl_mem buffer = Buffer(64);
  ASSERT_EQ(api::clFinish(queue_), CL_SUCCESS);
  EndSession();
  EXPECT_LT(api::clEnqueueFillBuffer(queue_, buffer, "x", 1, 0, 64, 0, nullptr, nullptr), 0);
  EXPECT_LT(api::clFinish(queue_), 0);
  EXPECT_EQ(api::clReleaseMemObject(buffer), CL_SUCCESS);
  const cl_command_queue old_queue = queue_;
  const cl_context old_context = context_;
  Begin();  // A new context has a new session.
  EXPECT_EQ(api::clReleaseCommandQueue(old_queue), CL_SUCCESS);
  EXPECT_EQ(api::clReleaseContext(old_context), CL_SUCCESS);
  EXPECT_EQ(api::clFinish(queue_), CL_SUCCESS);
}

}  // namespace
}  // namespace sluice::client
