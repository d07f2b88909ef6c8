// SPDX-License-Identifier: Apache-2.0
// Devices that are lost, and applications that end in the middle. The scene KilledInAcquire is what
// run.py starts and kills.
#include <windows.h>

#include <cstdio>

#include "tests/conformance/child_process.h"
#include "tests/sharing/d3d/d3d_fixture.h"
#include "tests/sharing/d3d/dx9_fixture.h"

namespace sluice::d3dtest {
namespace {

class Dx9Lost : public WithDx9 {
 protected:
  // The status of the event of an acquire, and of a release after it, which answers with it.
  std::pair<cl_int, cl_int> Round(cl_mem memory) {
    Own<cl_event> acquired;
    Own<cl_event> released;
    EXPECT_EQ(Acquire(memory, acquired.Out()), CL_SUCCESS);
    const cl_int answer = Release(memory, released.Out());
    clFinish(queue());  // Perhaps a late error.
    EXPECT_EQ(answer == CL_SUCCESS, conformance::StatusOf(released) == CL_COMPLETE) << answer;
    return {conformance::StatusOf(acquired), conformance::StatusOf(released)};
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

// What a lost device has is not the surface's contents, though it still can be locked: acquiring
// fails, and so does the release after it. Another device's surfaces are shared as before, and once
// the first is reset its new ones are.
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

// An application that has one buffer acquired, another one's acquire under way behind an event that
// nobody will set, and a third one's release: it says so and goes no further.
class KilledInAcquire : public WithD3d<Khr11> {
 public:
  void TestBody() override {
    SetUp();
    if (HasFatalFailure()) return;
    const Bytes bytes = Pattern(1 << 20, 1);
    std::vector<Com<ID3D11Buffer>> buffers;
    std::vector<Own<cl_mem>> memories;
    for (int i = 0; i < 3; ++i) {
      buffers.push_back(app().Buffer(bytes.size(), bytes.data()));
      memories.push_back(FromBuffer(buffers.back().Get()));
    }
    ASSERT_EQ(Acquire(memories[0]), CL_SUCCESS);
    ASSERT_EQ(Acquire(memories[2]), CL_SUCCESS);
    WriteBuffer(memories[0], bytes);
    WriteBuffer(memories[2], bytes);
    cl_int status = CL_SUCCESS;
    Own<cl_event> gate(clCreateUserEvent(context(), &status));
    Own<cl_command_queue> behind = NewQueue();
    const cl_mem second[] = {memories[1]};
    ASSERT_EQ(acquire_(behind, 1, second, 1, gate.AsList(), nullptr), CL_SUCCESS);
    const cl_mem third[] = {memories[2]};
    ASSERT_EQ(release_(behind, 1, third, 1, gate.AsList(), nullptr), CL_SUCCESS);
    ASSERT_EQ(clFlush(behind), CL_SUCCESS);
    std::puts("in the middle");
    std::fflush(stdout);
    ::Sleep(INFINITE);
  }
};

CHILD_SCENE(KilledInAcquire) {
  KilledInAcquire().TestBody();
  return 10;
}

}  // namespace
}  // namespace sluice::d3dtest
