// SPDX-License-Identifier: Apache-2.0
// References through cl_khr_dx9_media_sharing, and the order of its commands: what Direct3D 10 and
// 11 have in d3d_order_test.cc.
#include <vector>

#include "tests/sharing/d3d/again_fixture.h"
#include "tests/sharing/d3d/dx9_fixture.h"

namespace sluice::d3dtest {
namespace {

class Dx9Order : public WithNext<WithDx9> {
 protected:
  void SetUp() override {
    WithDx9::SetUp();
    ASSERT_FALSE(HasFatalFailure());
    surface_ = app().Offscreen(D3DFMT_A8R8G8B8, 16, 16);
    ASSERT_NE(surface_, nullptr);
    Draw(before_);
    memory_ = FromObject();
  }
  void Draw(const Bytes& pixels) override { app().Write(surface_.Get(), pixels, 64, 16); }
  Bytes Drawn() override { return app().Read(surface_.Get(), 64, 16); }
  cl_int EnqueueRead(cl_command_queue queue, cl_bool blocking, uint8_t* to) override {
    return clEnqueueReadImage(queue, memory_, blocking, kZero, kWhole, 0, 0, to, 0, nullptr,
                              nullptr);
  }
  cl_int EnqueueWrite(cl_command_queue queue, const Bytes& from, cl_uint waits = 0,
                      const cl_event* list = nullptr, cl_event* event = nullptr) override {
    return clEnqueueWriteImage(queue, memory_, CL_FALSE, kZero, kWhole, 0, 0, from.data(), waits,
                               list, event);
  }
  cl_mem TryFromObject(cl_int* status) override {
    cl_dx9_surface_info_khr info = {surface_.Get(), nullptr};
    return create_(context(), CL_MEM_READ_WRITE, type(), &info, 0, status);
  }
  std::vector<cl_context_properties> OwnProperties() override { return Properties(app().device()); }
  std::vector<ULONG> Counted() override {
    return {References(surface_.Get()), References(app().device())};
  }
  cl_int made_twice() const override { return CL_INVALID_DX9_MEDIA_SURFACE_KHR; }

  static constexpr size_t kZero[3] = {};
  static constexpr size_t kWhole[3] = {16, 16, 1};
  Com<IDirect3DSurface9> surface_;
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
  conformance::SetArg(kernel, 0, memory_);
  conformance::SetArg(kernel, 1, scratch);
  for (int round = 0; round < 10; ++round) {
    const auto blue = static_cast<uint8_t>(round * 20);
    ASSERT_EQ(app().device()->ColorFill(surface_.Get(), nullptr, D3DCOLOR_ARGB(255, 0, 255, blue)),
              D3D_OK);
    ASSERT_EQ(Acquire(memory_), CL_SUCCESS);
    ASSERT_EQ(
        clEnqueueNDRangeKernel(queue(), kernel, 2, nullptr, kWhole, nullptr, 0, nullptr, nullptr),
        CL_SUCCESS);
    ASSERT_EQ(
        clEnqueueCopyImage(queue(), scratch, memory_, kZero, kZero, kWhole, 0, nullptr, nullptr),
        CL_SUCCESS);
    ASSERT_EQ(Release(memory_), CL_SUCCESS);
    Bytes expected;
    for (int i = 0; i < 256; ++i) {
      const uint8_t pixel[4] = {static_cast<uint8_t>(255 - blue), 0, 255, 0};
      expected.insert(expected.end(), pixel, pixel + 4);
    }
    EXPECT_TRUE(Drawn() == expected) << round;
  }
}

// The scenes of order_fixture.h, counts_fixture.h and again_fixture.h, where it says what must
// hold.
TEST_P(Dx9Order, Events) {
  Events(CL_COMMAND_ACQUIRE_DX9_MEDIA_SURFACES_KHR, CL_COMMAND_RELEASE_DX9_MEDIA_SURFACES_KHR);
}
TEST_P(Dx9Order, NothingIsWaitedForByHand) { NothingIsWaitedForByHand(); }
TEST_P(Dx9Order, HoldsBackAnOutOfOrderQueue) { HoldsBackAnOutOfOrderQueue(); }
TEST_P(Dx9Order, LaterCommandsWaitForTheAcquire) { LaterCommandsWaitForTheAcquire(); }
TEST_P(Dx9Order, OutOfOrderQueue) { OutOfOrderQueue(); }
TEST_P(Dx9Order, AcrossQueues) { AcrossQueues(); }
TEST_P(Dx9Order, AcquireWaitsForUserEvent) { AcquireWaitsForUserEvent(); }
TEST_P(Dx9Order, ReleaseBehindUserEvent) { ReleaseBehindUserEvent(); }
TEST_P(Dx9Order, ReleaseBesideUserEvent) { ReleaseBesideUserEvent(); }
TEST_P(Dx9Order, FailedWaitList) { FailedWaitList(); }
TEST_P(Dx9Order, UserSync) { UserSync(); }
TEST_P(Dx9Order, NothingIsHeldWhenWaitedFor) { NothingIsHeldWhenWaitedFor(); }
TEST_P(Dx9Order, NothingIsHeldInCallbacks) { NothingIsHeldInCallbacks(); }
TEST_P(Dx9Order, NothingIsHeldAfterTheLastReleases) { NothingIsHeldAfterTheLastReleases(); }
TEST_P(Dx9Order, NothingIsHeldForLong) { NothingIsHeldForLong(); }
TEST_P(Dx9Order, NothingIsHeldAfterAFailedRelease) { NothingIsHeldAfterAFailedRelease(); }
TEST_P(Dx9Order, FramesWithoutFinish) { FramesWithoutFinish(); }
TEST_P(Dx9Order, MadeTwice) { MadeTwice(); }
TEST_P(Dx9Order, TurnsOfTwoThreads) { TurnsOfTwoThreads(); }
TEST_P(Dx9Order, ThreadsThatSharedEnd) { ThreadsThatSharedEnd(); }

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

// A device without D3DCREATE_MULTITHREADED, on its thread: nothing is left to a call of that thread
// that has made one.
class Dx9OneThread : public Dx9Order {
 protected:
  bool multithreaded() const override { return false; }
};
TEST_P(Dx9OneThread, NothingIsHeldWhenWaitedFor) { NothingIsHeldWhenWaitedFor(); }
TEST_P(Dx9OneThread, NothingIsHeldAfterTheLastReleases) { NothingIsHeldAfterTheLastReleases(); }
TEST_P(Dx9OneThread, FramesWithoutFinish) { FramesWithoutFinish(); }

INSTANTIATE_TEST_SUITE_P(, Dx9OneThread,
                         testing::Values(CL_ADAPTER_D3D9_KHR, CL_ADAPTER_D3D9EX_KHR), ApiName);
INSTANTIATE_TEST_SUITE_P(, Dx9Order, testing::Values(CL_ADAPTER_D3D9_KHR, CL_ADAPTER_D3D9EX_KHR),
                         ApiName);

}  // namespace
}  // namespace sluice::d3dtest
