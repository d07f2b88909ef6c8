// SPDX-License-Identifier: Apache-2.0
// References through cl_khr_dx9_media_sharing, and the order of its commands: what Direct3D 10 and
// 11 have in d3d_order_test.cc.
#include <vector>

#include "tests/sharing/d3d/dx9_fixture.h"

namespace sluice::d3dtest {
namespace {

class Dx9Order : public WithDx9 {
 protected:
  void SetUp() override {
    WithDx9::SetUp();
    ASSERT_FALSE(HasFatalFailure());
    surface_ = app().Offscreen(D3DFMT_A8R8G8B8, 16, 16);
    ASSERT_NE(surface_, nullptr);
    Draw(before_);
    image_ = From(surface_.Get());
  }
  void Draw(const Bytes& pixels) { app().Write(surface_.Get(), pixels, 64, 16); }
  Bytes Drawn() { return app().Read(surface_.Get(), 64, 16); }
  cl_int EnqueueRead(cl_command_queue queue, cl_bool blocking, Bytes* to) {
    const size_t zero[3] = {};
    const size_t whole[3] = {16, 16, 1};
    to->resize(16 * 64);
    return clEnqueueReadImage(queue, image_, blocking, zero, whole, 0, 0, to->data(), 0, nullptr,
                              nullptr);
  }
  cl_int EnqueueWrite(cl_command_queue queue, const Bytes& from, cl_uint waits = 0,
                      const cl_event* list = nullptr, cl_event* event = nullptr) {
    const size_t zero[3] = {};
    const size_t whole[3] = {16, 16, 1};
    return clEnqueueWriteImage(queue, image_, CL_FALSE, zero, whole, 0, 0, from.data(), waits, list,
                               event);
  }

  const Bytes before_ = Pattern(kBgra8, 256, 1);
  const Bytes after_ = Pattern(kBgra8, 256, 2);
  Com<IDirect3DSurface9> surface_;
  Own<cl_mem> image_;
};

// Direct3D fills, a kernel inverts what it finds, Direct3D sees that: many times over, and nothing
// is waited for by hand.
TEST_P(Dx9Order, DrawnThenTransformed) {
  Own<cl_kernel> kernel = BuildKernel(
      "kernel void invert(read_only image2d_t in, write_only image2d_t out) {"
      "  const int2 at = (int2)(get_global_id(0), get_global_id(1));"
      "  write_imagef(out, at, 1.0f - read_imagef(in, at)); }",
      "invert");
  cl_int status = CL_SUCCESS;
  cl_image_desc desc = {};
  desc.image_type = CL_MEM_OBJECT_IMAGE2D;
  desc.image_width = desc.image_height = 16;
  Own<cl_mem> scratch(
      clCreateImage(context(), CL_MEM_READ_WRITE, &kBgra8, &desc, nullptr, &status));
  ASSERT_EQ(status, CL_SUCCESS);
  conformance::SetArg(kernel, 0, image_);
  conformance::SetArg(kernel, 1, scratch);
  const size_t zero[3] = {};
  const size_t whole[3] = {16, 16, 1};
  for (int round = 0; round < 10; ++round) {
    const auto blue = static_cast<uint8_t>(round * 20);
    ASSERT_EQ(app().device()->ColorFill(surface_.Get(), nullptr, D3DCOLOR_ARGB(255, 0, 255, blue)),
              D3D_OK);
    ASSERT_EQ(Acquire(image_), CL_SUCCESS);
    ASSERT_EQ(
        clEnqueueNDRangeKernel(queue(), kernel, 2, nullptr, whole, nullptr, 0, nullptr, nullptr),
        CL_SUCCESS);
    ASSERT_EQ(clEnqueueCopyImage(queue(), scratch, image_, zero, zero, whole, 0, nullptr, nullptr),
              CL_SUCCESS);
    ASSERT_EQ(Release(image_), CL_SUCCESS);
    Bytes expected;
    for (int i = 0; i < 256; ++i) {
      const uint8_t pixel[4] = {static_cast<uint8_t>(255 - blue), 0, 255, 0};
      expected.insert(expected.end(), pixel, pixel + 4);
    }
    EXPECT_TRUE(Drawn() == expected) << round;
  }
}

// Also in a queue without order an acquire comes before all later commands, and a release after all
// earlier ones (section 9.7.7.4), without a list or a wait.
TEST_P(Dx9Order, HoldsBackAnOutOfOrderQueue) {
  if (!HasOutOfOrder()) GTEST_SKIP() << "no out-of-order queues";
  Own<cl_command_queue> queue = NewQueue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  const cl_mem list[] = {image_};
  for (uint32_t round = 0; round < 10; ++round) {
    const Bytes mine = Pattern(kBgra8, 256, 100 + round);
    const Bytes theirs = Pattern(kBgra8, 256, 200 + round);
    Draw(mine);
    ASSERT_EQ(acquire_(queue, 1, list, 0, nullptr, nullptr), CL_SUCCESS);
    Bytes seen;
    ASSERT_EQ(EnqueueRead(queue, CL_TRUE, &seen), CL_SUCCESS);
    EXPECT_TRUE(seen == mine) << round;
    ASSERT_EQ(EnqueueWrite(queue, theirs), CL_SUCCESS);
    ASSERT_EQ(release_(queue, 1, list, 0, nullptr, nullptr), CL_SUCCESS);
    EXPECT_TRUE(Drawn() == theirs) << round;
  }
}

// That holds behind a gate too: what comes later than an acquire that has not begun waits for it.
TEST_P(Dx9Order, LaterCommandsWaitForTheAcquire) {
  if (!HasOutOfOrder()) GTEST_SKIP() << "no out-of-order queues";
  Own<cl_command_queue> queue = NewQueue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  const cl_mem list[] = {image_};
  cl_int status = CL_SUCCESS;
  Own<cl_event> gate(clCreateUserEvent(context(), &status));
  ASSERT_EQ(status, CL_SUCCESS);
  ASSERT_EQ(acquire_(queue, 1, list, 1, gate.AsList(), nullptr), CL_SUCCESS);
  Own<cl_event> written;
  ASSERT_EQ(EnqueueWrite(queue, after_, 0, nullptr, written.Out()), CL_SUCCESS);
  ASSERT_EQ(clFlush(queue), CL_SUCCESS);
  EXPECT_GT(conformance::StatusOf(written), CL_COMPLETE);
  ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
  ASSERT_EQ(release_(queue, 1, list, 0, nullptr, nullptr), CL_SUCCESS);
  EXPECT_TRUE(Drawn() == after_);
}

// An acquire waits for its list, a user event among it, and blocks nobody.
TEST_P(Dx9Order, AcquireWaitsForUserEvent) {
  cl_int status = CL_SUCCESS;
  Own<cl_event> gate(clCreateUserEvent(context(), &status));
  ASSERT_EQ(status, CL_SUCCESS);
  const cl_mem list[] = {image_};
  Own<cl_event> acquired;
  ASSERT_EQ(acquire_(queue(), 1, list, 1, gate.AsList(), acquired.Out()), CL_SUCCESS);
  EXPECT_GT(conformance::StatusOf(acquired), CL_COMPLETE);
  // Drawn after the call but before the gate: still Direct3D's turn, since nothing is acquired.
  Draw(after_);
  ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
  EXPECT_TRUE(ReadImage(image_, {16, 16}) == after_);
  EXPECT_EQ(Release(image_), CL_SUCCESS);
}

// A release behind a user event does not wait in the call, which nobody could end; its event does.
TEST_P(Dx9Order, ReleaseBehindUserEvent) {
  ASSERT_EQ(Acquire(image_), CL_SUCCESS);
  WriteImage(image_, {16, 16}, after_);
  cl_int status = CL_SUCCESS;
  Own<cl_event> gate(clCreateUserEvent(context(), &status));
  ASSERT_EQ(status, CL_SUCCESS);
  const cl_mem list[] = {image_};
  Own<cl_event> released;
  ASSERT_EQ(release_(queue(), 1, list, 1, gate.AsList(), released.Out()), CL_SUCCESS);
  EXPECT_GT(conformance::StatusOf(released), CL_COMPLETE);
  ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
  ASSERT_EQ(clWaitForEvents(1, released.AsList()), CL_SUCCESS);
  EXPECT_TRUE(Drawn() == after_);
}

// A wait list whose event failed fails the acquire's event, and the release's after it; Direct3D
// keeps what it had.
TEST_P(Dx9Order, FailedWaitList) {
  cl_int status = CL_SUCCESS;
  Own<cl_event> gate(clCreateUserEvent(context(), &status));
  ASSERT_EQ(status, CL_SUCCESS);
  const cl_mem list[] = {image_};
  Own<cl_event> acquired;
  ASSERT_EQ(acquire_(queue(), 1, list, 1, gate.AsList(), acquired.Out()), CL_SUCCESS);
  ASSERT_EQ(clSetUserEventStatus(gate, -5), CL_SUCCESS);
  EXPECT_EQ(clWaitForEvents(1, acquired.AsList()), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
  Own<cl_event> released;
  ASSERT_EQ(Release(image_, released.Out()), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
  EXPECT_LT(conformance::StatusOf(released), 0);
  EXPECT_TRUE(Drawn() == before_);
}

// Acquired on one queue, used on another behind an event, released on a third.
TEST_P(Dx9Order, AcrossQueues) {
  Own<cl_command_queue> second = NewQueue();
  Own<cl_command_queue> third = NewQueue();
  Own<cl_event> acquired;
  Own<cl_event> written;
  ASSERT_EQ(Acquire(image_, acquired.Out()), CL_SUCCESS);
  ASSERT_EQ(EnqueueWrite(second, after_, 1, acquired.AsList(), written.Out()), CL_SUCCESS);
  const cl_mem list[] = {image_};
  ASSERT_EQ(release_(third, 1, list, 1, written.AsList(), nullptr), CL_SUCCESS);
  EXPECT_TRUE(Drawn() == after_);
}

// A refused context, a query for devices and a refused memory object leave no reference behind.
TEST_P(Dx9Order, RefusalsHoldNothing) {
  Dx9App other(is_ex(), true);
  const ULONG before = References(other.device());
  std::vector<cl_context_properties> twice = Properties(other.device());
  twice.insert(twice.end() - 1, {property(), twice[3]});
  cl_int status = CL_SUCCESS;
  NewContext(twice, &status);
  EXPECT_EQ(status, CL_INVALID_PROPERTY);
  EXPECT_EQ(References(other.device()), before);
  cl_dx9_media_adapter_type_khr type = GetParam();
  void* adapter = other.device();
  cl_uint count = 0;
  EXPECT_EQ(get_devices_(platform(), 1, &type, &adapter, CL_ALL_DEVICES_FOR_DX9_MEDIA_ADAPTER_KHR,
                         0, nullptr, &count),
            CL_SUCCESS);
  EXPECT_EQ(References(other.device()), before);
  const auto unlisted = app().Offscreen(kYuy2, 8, 8);
  const ULONG unlisted_before = References(unlisted.Get());
  From(unlisted.Get(), 0, CL_INVALID_IMAGE_FORMAT_DESCRIPTOR);
  EXPECT_EQ(References(unlisted.Get()), unlisted_before);
}

// Each plane's memory object has a reference of the surface, which lives on with OpenCL's alone.
TEST_P(Dx9Order, PlanesHoldTheirSurface) {
  auto surface = app().Offscreen(kYv12, 64, 32);
  const ULONG before = References(surface.Get());
  Own<cl_mem> luma = From(surface.Get(), 0);
  Own<cl_mem> chroma = From(surface.Get(), 1);
  EXPECT_EQ(References(surface.Get()), before + 2);
  From(surface.Get(), 1, CL_INVALID_DX9_MEDIA_SURFACE_KHR);
  EXPECT_EQ(References(surface.Get()), before + 2);
  luma.Reset();
  EXPECT_EQ(References(surface.Get()), before + 1);
  surface.Reset();
  const Bytes bytes = Pattern({CL_R, CL_UNORM_INT8}, 32 * 16, 3);
  ASSERT_EQ(Acquire(chroma), CL_SUCCESS);
  WriteImage(chroma, {32, 16}, bytes);
  ASSERT_EQ(Release(chroma), CL_SUCCESS);
  ASSERT_EQ(Acquire(chroma), CL_SUCCESS);
  EXPECT_TRUE(ReadImage(chroma, {32, 16}) == bytes);
  EXPECT_EQ(Release(chroma), CL_SUCCESS);
}

INSTANTIATE_TEST_SUITE_P(, Dx9Order, testing::Values(CL_ADAPTER_D3D9_KHR, CL_ADAPTER_D3D9EX_KHR),
                         [](const auto& one) {
                           return one.param == CL_ADAPTER_D3D9EX_KHR ? "D3D9Ex" : "D3D9";
                         });

}  // namespace
}  // namespace sluice::d3dtest
