// SPDX-License-Identifier: Apache-2.0
// Devices that are lost, and applications that end in the middle: the scenes are what run.py starts
// and kills.
#include <windows.h>

#include <cstdio>

#include "tests/conformance/harness/child_process.h"
#include "tests/sharing/d3d/d3d_fixture.h"
#include "tests/sharing/d3d/dx9_fixture.h"

namespace sluice::d3dtest {
namespace {

class Dx9Lost : public WithDx9 {
 protected:
  // The status of the event of an acquire, and the answer of a release after it, which has an event
  // if it is none of failure.
  std::pair<cl_int, cl_int> Round(cl_mem memory) {
    Own<cl_event> acquired;
    Own<cl_event> released;
    EXPECT_EQ(Acquire(memory, acquired.Out()), CL_SUCCESS);
    const cl_int answer = Release(memory, released.Out());
    clFinish(queue());  // Perhaps a late error.
    EXPECT_EQ(answer == CL_SUCCESS, released.get() != nullptr) << answer;
    return {conformance::StatusOf(acquired), answer};
  }
  // A reset that fails, because a surface of the default pool is there, leaves the device lost.
  HRESULT LoseDevice() {
    D3DPRESENT_PARAMETERS parameters = {};
    parameters.Windowed = TRUE;
    parameters.SwapEffect = D3DSWAPEFFECT_DISCARD;
    parameters.hDeviceWindow = ::GetDesktopWindow();
    parameters.BackBufferWidth = 64;
    parameters.BackBufferHeight = 64;
    EXPECT_EQ(app().device()->Reset(&parameters), D3DERR_INVALIDCALL);
    return app().device()->TestCooperativeLevel();
  }
};

// A lost device no longer has the surface's contents, though the surface still can be locked:
// acquiring fails, and so does the release after it. Another device's surfaces are shared as
// before. (The time after a reset is not seen here: Wine 8 cannot reset a device that it has lost
// so.)
TEST_P(Dx9Lost, LostDeviceIsNoSuccess) {
  auto surface = app().Offscreen(D3DFMT_A8R8G8B8, 16, 8);
  Own<cl_mem> image = From(surface.Get());
  EXPECT_EQ(Round(image), (std::pair<cl_int, cl_int>(CL_COMPLETE, CL_COMPLETE)));
  if (LoseDevice() != D3DERR_DEVICENOTRESET)
    GTEST_SKIP() << "this Direct3D did not lose its device";
  const auto [acquired, released] = Round(image);
  EXPECT_LT(acquired, 0);
  EXPECT_LT(released, 0);
  const std::pair<cl_int, cl_int> again = Round(image);
  EXPECT_LT(again.first, 0);
  EXPECT_LT(again.second, 0);
  image.Reset();
  LetContextGo();

  Dx9App second(is_ex(), /*multithreaded=*/true);
  ASSERT_TRUE(second.ok());
  MakeContext(Properties(second.device()));
  const auto other = second.Offscreen(D3DFMT_A8R8G8B8, 16, 8);
  const Bytes bytes = Pattern(16 * 8 * 4, 3);
  second.Write(other.Get(), bytes, 16 * 4, 8);
  Own<cl_mem> others = From(other.Get());
  ASSERT_EQ(Acquire(others), CL_SUCCESS);
  EXPECT_TRUE(ReadImage(others, {16, 8}) == bytes);
  EXPECT_EQ(Release(others), CL_SUCCESS);
}

INSTANTIATE_TEST_SUITE_P(, Dx9Lost, testing::Values(CL_ADAPTER_D3D9_KHR),
                         [](const auto&) { return "D3D9"; });

// Applications that have one object acquired, another one's acquire under way behind an event that
// nobody will set, and a third one's release: they say so and go no further.
template <typename Fixture>
class Killed : public Fixture {
 protected:
  static constexpr int kObjects = 3;

  // `write` is what OpenCL does with an object that is acquired.
  template <typename Write>
  void StopInTheMiddle(const std::vector<Own<cl_mem>>& memories, Write write) {
    for (const int acquired : {0, 2}) {
      ASSERT_EQ(this->Acquire(memories[acquired]), CL_SUCCESS);
      write(memories[acquired]);
    }
    cl_int status = CL_SUCCESS;
    Own<cl_event> gate(clCreateUserEvent(this->context(), &status));
    ASSERT_EQ(status, CL_SUCCESS);
    Own<cl_command_queue> behind = this->NewQueue();
    const cl_mem second[] = {memories[1]};
    ASSERT_EQ(this->acquire_(behind, 1, second, 1, gate.AsList(), nullptr), CL_SUCCESS);
    const cl_mem third[] = {memories[2]};
    ASSERT_EQ(this->release_(behind, 1, third, 1, gate.AsList(), nullptr), CL_SUCCESS);
    ASSERT_EQ(clFlush(behind), CL_SUCCESS);
    std::puts("in the middle");
    std::fflush(stdout);
    ::Sleep(INFINITE);
  }
};

template <typename E>
class KilledInAcquire : public Killed<WithD3d<E>> {
 public:
  void TestBody() override {
    this->SetUp();
    if (this->HasFatalFailure()) return;
    const Bytes bytes = Pattern(1 << 20, 1);
    std::vector<Com<typename E::Buffer>> buffers;
    std::vector<Own<cl_mem>> memories;
    for (int i = 0; i < this->kObjects; ++i) {
      buffers.push_back(this->app().Buffer(bytes.size(), bytes.data()));
      memories.push_back(this->FromBuffer(buffers.back().Get()));
    }
    this->StopInTheMiddle(memories, [&](cl_mem one) { this->WriteBuffer(one, bytes); });
  }
};

template <cl_dx9_media_adapter_type_khr kType>
class Dx9KilledInAcquire : public Killed<WithDx9> {
 public:
  void TestBody() override {
    SetUp();
    if (HasFatalFailure()) return;
    const Bytes bytes = Pattern(64 * 64 * 4, 1);
    std::vector<Com<IDirect3DSurface9>> surfaces;
    std::vector<Own<cl_mem>> memories;
    for (int i = 0; i < kObjects; ++i) {
      surfaces.push_back(app().Offscreen(D3DFMT_A8R8G8B8, 64, 64));
      memories.push_back(From(surfaces.back().Get()));
    }
    StopInTheMiddle(memories, [&](cl_mem one) { WriteImage(one, {64, 64}, bytes); });
  }
  cl_dx9_media_adapter_type_khr type() const override { return kType; }
};

// Only a failure gets so far.
template <typename Application>
int RunUntilKilled() {
  Application().TestBody();
  return 10;
}

CHILD_SCENE(KilledD3D10) { return RunUntilKilled<KilledInAcquire<Khr10>>(); }
CHILD_SCENE(KilledD3D11) { return RunUntilKilled<KilledInAcquire<Khr11>>(); }
CHILD_SCENE(KilledD3D11NV) { return RunUntilKilled<KilledInAcquire<Nv11>>(); }
CHILD_SCENE(KilledD3D9) { return RunUntilKilled<Dx9KilledInAcquire<CL_ADAPTER_D3D9_KHR>>(); }
CHILD_SCENE(KilledD3D9Ex) { return RunUntilKilled<Dx9KilledInAcquire<CL_ADAPTER_D3D9EX_KHR>>(); }

}  // namespace
}  // namespace sluice::d3dtest
