// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <functional>

#include "tests/conformance/harness/fixtures.h"

namespace sluice::conformance {
namespace {

// A command that is refused after its call has returned: on Sluice alone, since native drivers
// check a launch in the call. The next call that has waited for the queue reports it, with the
// driver's code, and only that one.
class LateErrorTest : public WithQueue {
 protected:
  static constexpr size_t kInts = 65536;  // More than travels with a command.
  static constexpr size_t kBytes = kInts * sizeof(cl_int);

  void SetUp() override {
    WithQueue::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    if (!TheHarness().IsSluice()) GTEST_SKIP() << "native drivers refuse a launch in its call";
    if (!HasImages()) GTEST_SKIP() << "the device has no samplers";
    program_ = Program("kernel void sampled(global int* out, sampler_t s) { out[0] = 7; }");
    kernel_ = Kernel(program_, "sampled");
    data_ = BufferOf(Counting(kInts));
    small_ = BufferOf(Counting(4));
    SetArg(kernel_, 0, small_);
  }

  // An argument keeps nothing alive (section 5.9.2): without its sampler the launch is refused.
  void LaunchToBeRefused(cl_event* event = nullptr) const {
    Own<cl_sampler> sampler =
        MAKE("clCreateSampler.late",
             clCreateSampler(context(), CL_FALSE, CL_ADDRESS_CLAMP, CL_FILTER_NEAREST, error));
    SetArg(kernel_, 1, sampler.get());
    sampler.Reset();
    const size_t one = 1;
    EXPECT_CL(
        "clEnqueueNDRangeKernel.late", CL_SUCCESS,
        clEnqueueNDRangeKernel(queue(), kernel_, 1, nullptr, &one, nullptr, 0, nullptr, event));
  }

  using Call = std::function<cl_int(cl_event*)>;
  // `call` waits for the queue, and gives its event if it has one.
  void ExpectReportedOnce(const char* name, const Call& call) const {
    SCOPED_TRACE(name);
    LaunchToBeRefused();
    Own<cl_event> event;
    const cl_int code = call(event.Out());
    EXPECT_TRUE(code == CL_INVALID_SAMPLER || code == CL_INVALID_KERNEL_ARGS) << code;
    // It has done its own part.
    if (event.get() != nullptr) {
      EXPECT_EQ(StatusOf(event), CL_COMPLETE);
    }
    EXPECT_EQ(clFinish(queue()), CL_SUCCESS);
    EXPECT_EQ(call(Own<cl_event>().Out()), CL_SUCCESS);
  }

  cl_mem data() const { return data_; }
  cl_mem small() const { return small_; }

 private:
  Own<cl_program> program_;
  Own<cl_kernel> kernel_;
  Own<cl_mem> data_;
  Own<cl_mem> small_;
};

cl_uint MapCount(cl_mem memory) {
  cl_uint count = ~0u;
  EXPECT_EQ(clGetMemObjectInfo(memory, CL_MEM_MAP_COUNT, sizeof(count), &count, nullptr),
            CL_SUCCESS);
  return count;
}

TEST_F(LateErrorTest, FinishAndEvents) {
  ExpectReportedOnce("clFinish", [this](cl_event*) { return clFinish(queue()); });
  ExpectReportedOnce("clWaitForEvents", [this](cl_event* event) {
    EXPECT_EQ(clEnqueueMarkerWithWaitList(queue(), 0, nullptr, event), CL_SUCCESS);
    return clWaitForEvents(1, event);
  });
}

// Its own event tells it as any failure.
TEST_F(LateErrorTest, OwnEvent) {
  Own<cl_event> event;
  LaunchToBeRefused(event.Out());
  const cl_event handle = event;
  EXPECT_CL("clWaitForEvents.late_own", CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST,
            clWaitForEvents(1, &handle));
  EXPECT_LT(StatusOf(event), 0);
  EXPECT_CL("clFinish.late_own", CL_SUCCESS, clFinish(queue()));
}

// A command that fails by itself leaves it to the next one.
TEST_F(LateErrorTest, BehindAFailure) {
  const Own<cl_event> gate = UserEvent();
  EXPECT_EQ(clSetUserEventStatus(gate, -7), CL_SUCCESS);
  const cl_event handle = gate;
  LaunchToBeRefused();
  cl_int value = 0;
  EXPECT_CL("clEnqueueReadBuffer.late_failed", CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST,
            clEnqueueReadBuffer(queue(), small(), CL_TRUE, 0, sizeof(value), &value, 1, &handle,
                                nullptr));
  EXPECT_NE(clFinish(queue()), CL_SUCCESS);
  EXPECT_EQ(clFinish(queue()), CL_SUCCESS);
}

TEST_F(LateErrorTest, Buffers) {
  std::vector<cl_int> host(kInts, 3);
  for (const size_t bytes : {sizeof(cl_int), kBytes}) {
    SCOPED_TRACE(bytes);
    ExpectReportedOnce("clEnqueueReadBuffer", [&](cl_event* event) {
      return clEnqueueReadBuffer(queue(), data(), CL_TRUE, 0, bytes, host.data(), 0, nullptr,
                                 event);
    });
    EXPECT_EQ(host[0], 0);
    host[0] = 3;
    ExpectReportedOnce("clEnqueueWriteBuffer", [&](cl_event* event) {
      return clEnqueueWriteBuffer(queue(), data(), CL_TRUE, 0, bytes, host.data(), 0, nullptr,
                                  event);
    });
    EXPECT_EQ(Read<cl_int>(data(), 1)[0], 3);
    Write(data(), Counting(1));
  }
  const std::array<size_t, 3> zero = {0, 0, 0};
  const std::array<size_t, 3> region = {256, 16, 1};
  ExpectReportedOnce("clEnqueueReadBufferRect", [&](cl_event* event) {
    return clEnqueueReadBufferRect(queue(), data(), CL_TRUE, zero.data(), zero.data(),
                                   region.data(), 0, 0, 0, 0, host.data(), 0, nullptr, event);
  });
  ExpectReportedOnce("clEnqueueWriteBufferRect", [&](cl_event* event) {
    return clEnqueueWriteBufferRect(queue(), data(), CL_TRUE, zero.data(), zero.data(),
                                    region.data(), 0, 0, 0, 0, host.data(), 0, nullptr, event);
  });
}

TEST_F(LateErrorTest, Maps) {
  for (const cl_map_flags flags : {CL_MAP_READ, CL_MAP_WRITE, CL_MAP_WRITE_INVALIDATE_REGION}) {
    SCOPED_TRACE(flags);
    ExpectReportedOnce("clEnqueueMapBuffer", [&](cl_event* event) {
      cl_int code = CL_SUCCESS;
      void* const pointer =
          clEnqueueMapBuffer(queue(), data(), CL_TRUE, flags, 0, kBytes, 0, nullptr, event, &code);
      EXPECT_EQ(pointer == nullptr, code != CL_SUCCESS);
      EXPECT_EQ(MapCount(data()), pointer == nullptr ? 0u : 1u);
      if (pointer != nullptr) {
        EXPECT_EQ(clEnqueueUnmapMemObject(queue(), data(), pointer, 0, nullptr, nullptr),
                  CL_SUCCESS);
      }
      return code;
    });
  }
}

TEST_F(LateErrorTest, Images) {
  const cl_image_format format = {CL_RGBA, CL_UNORM_INT8};
  cl_image_desc desc = {};
  desc.image_type = CL_MEM_OBJECT_IMAGE2D;
  desc.image_width = 64;
  desc.image_height = 64;
  const Own<cl_mem> image =
      MAKE("clCreateImage.late",
           clCreateImage(context(), CL_MEM_READ_WRITE, &format, &desc, nullptr, error));
  const std::array<size_t, 3> zero = {0, 0, 0};
  const std::array<size_t, 3> region = {64, 64, 1};
  std::vector<cl_uchar> host(64 * 64 * 4, 9);
  ExpectReportedOnce("clEnqueueWriteImage", [&](cl_event* event) {
    return clEnqueueWriteImage(queue(), image, CL_TRUE, zero.data(), region.data(), 0, 0,
                               host.data(), 0, nullptr, event);
  });
  host.assign(host.size(), 0);
  ExpectReportedOnce("clEnqueueReadImage", [&](cl_event* event) {
    return clEnqueueReadImage(queue(), image, CL_TRUE, zero.data(), region.data(), 0, 0,
                              host.data(), 0, nullptr, event);
  });
  EXPECT_EQ(host[0], 9);
  ExpectReportedOnce("clEnqueueMapImage", [&](cl_event* event) {
    cl_int code = CL_SUCCESS;
    size_t pitch = 0;
    void* const pointer =
        clEnqueueMapImage(queue(), image, CL_TRUE, CL_MAP_WRITE, zero.data(), region.data(), &pitch,
                          nullptr, 0, nullptr, event, &code);
    EXPECT_EQ(pointer == nullptr, code != CL_SUCCESS);
    EXPECT_EQ(MapCount(image), pointer == nullptr ? 0u : 1u);
    if (pointer != nullptr) {
      EXPECT_EQ(clEnqueueUnmapMemObject(queue(), image, pointer, 0, nullptr, nullptr), CL_SUCCESS);
    }
    return code;
  });
}

TEST_F(LateErrorTest, Svm) {
  if (!HasSvm()) GTEST_SKIP() << "the device has no shared virtual memory";
  void* const first = clSVMAlloc(context(), CL_MEM_READ_WRITE, kBytes, 0);
  void* const second = clSVMAlloc(context(), CL_MEM_READ_WRITE, kBytes, 0);
  ASSERT_TRUE(first != nullptr && second != nullptr);
  const std::vector<cl_int> host(kInts, 3);
  ExpectReportedOnce("clEnqueueSVMMemcpy from the host", [&](cl_event* event) {
    return clEnqueueSVMMemcpy(queue(), CL_TRUE, first, host.data(), kBytes, 0, nullptr, event);
  });
  ExpectReportedOnce("clEnqueueSVMMemcpy", [&](cl_event* event) {
    return clEnqueueSVMMemcpy(queue(), CL_TRUE, second, first, kBytes, 0, nullptr, event);
  });
  ExpectReportedOnce("clEnqueueSVMMap", [&](cl_event* event) {
    const cl_int code =
        clEnqueueSVMMap(queue(), CL_TRUE, CL_MAP_READ, second, kBytes, 0, nullptr, event);
    if (code != CL_SUCCESS) return code;
    EXPECT_EQ(*static_cast<const cl_int*>(second), 3);
    EXPECT_EQ(clEnqueueSVMUnmap(queue(), second, 0, nullptr, nullptr), CL_SUCCESS);
    return code;
  });
  Finish();
  clSVMFree(context(), first);
  clSVMFree(context(), second);
}

// A command behind an event that has failed already is no such command: it fails as one whose list
// fails afterwards, by its event (section 5.11), and nothing that does not wait for it does. (PoCL
// hangs natively.)
TEST_F(LateErrorTest, FailedListsAreNone) {
  for (const cl_command_queue_properties flags :
       {cl_command_queue_properties{0},
        cl_command_queue_properties{CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE}}) {
    const Own<cl_command_queue> other = Queue(flags);
    const Own<cl_event> gate(clCreateUserEvent(context(), nullptr));
    EXPECT_EQ(clSetUserEventStatus(gate, -5), CL_SUCCESS);
    const cl_int pattern = 3;
    Own<cl_event> failed, done;
    const auto fill = [&](cl_mem mem, cl_uint waits, Own<cl_event>* event) {
      EXPECT_EQ(clEnqueueFillBuffer(other, mem, &pattern, sizeof(pattern), 0, sizeof(pattern),
                                    waits, waits == 0 ? nullptr : gate.AsList(), event->Out()),
                CL_SUCCESS);
    };
    fill(small(), 1, &failed);
    fill(data(), 0, &done);
    EXPECT_EQ(clWaitForEvents(1, done.AsList()), CL_SUCCESS);
    cl_int back = 0;
    EXPECT_EQ(clEnqueueReadBuffer(other, data(), CL_TRUE, 0, sizeof(back), &back, 1, done.AsList(),
                                  nullptr),
              CL_SUCCESS);
    EXPECT_EQ(back, pattern);
    EXPECT_EQ(clFinish(other), CL_SUCCESS);
    EXPECT_EQ(StatusOf(failed), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    EXPECT_EQ(clWaitForEvents(1, failed.AsList()), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
  }
}

}  // namespace
}  // namespace sluice::conformance
