// SPDX-License-Identifier: Apache-2.0
// Contents, references and order through cl_khr_dx9_media_sharing, bit for bit.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "tests/sharing/d3d/dx9_fixture.h"

namespace sluice::d3dtest {
namespace {

constexpr cl_image_format kOne = {CL_R, CL_UNORM_INT8};
constexpr cl_image_format kPair = {CL_RG, CL_UNORM_INT8};

class Dx9Objects : public WithImages<WithDx9> {};

// The platform and the device have the extension.
TEST_P(Dx9Objects, ExtensionIsListed) {
  EXPECT_NE(conformance::PlatformString(platform(), CL_PLATFORM_EXTENSIONS)
                .find("cl_khr_dx9_media_sharing"),
            std::string::npos);
  EXPECT_NE(
      conformance::DeviceString(device(), CL_DEVICE_EXTENSIONS).find("cl_khr_dx9_media_sharing"),
      std::string::npos);
}

// Every row of table 9.10.4, of odd size: it is what the table says, and its bits survive both
// ways; one that the OpenCL device has not is refused.
TEST_P(Dx9Objects, EveryFormat) {
  const Size size = {37, 19};
  int shared = 0;
  int made = 0;
  for (const Dx9Format& format : AllDx9Formats()) {
    SCOPED_TRACE(format.name);
    const auto surface = app().Offscreen(format.native, 37, 19);
    if (surface == nullptr) continue;  // Direct3D has no such surfaces here.
    ++made;
    if (!DeviceHas(format.cl, CL_MEM_OBJECT_IMAGE2D, CL_MEM_READ_WRITE)) {
      From(surface.Get(), 0, CL_INVALID_IMAGE_FORMAT_DESCRIPTOR);
      continue;
    }
    const size_t row = size.width * ElementBytes(format.cl);
    const Bytes before = Pattern(format.cl, size.elements(), 1);
    const Bytes after = Pattern(format.cl, size.elements(), 2);
    app().Write(surface.Get(), before, row, size.height);
    Own<cl_mem> image = From(surface.Get());
    ASSERT_NE(image.get(), nullptr);
    EXPECT_EQ(FormatOf(image).image_channel_order, format.cl.image_channel_order);
    EXPECT_EQ(FormatOf(image).image_channel_data_type, format.cl.image_channel_data_type);
    ThroughImage(image, size, before, after);
    EXPECT_TRUE(app().Read(surface.Get(), row, size.height) == after);
    ++shared;
  }
  std::printf("%d of %zu formats shared, %d made\n", shared, AllDx9Formats().size(), made);
  EXPECT_GT(shared, 0);
}

// In each of the device's formats, from one surface to another, a kernel has what Direct3D wrote,
// and Direct3D what the kernel made of it.
TEST_P(Dx9Objects, EveryFormatThroughKernel) {
  const Size size = {37, 19};
  for (const Dx9Format& format : AllDx9Formats()) {
    SCOPED_TRACE(format.name);
    const auto from = app().Offscreen(format.native, 37, 19);
    const auto to = app().Offscreen(format.native, 37, 19);
    if (from == nullptr || !DeviceHas(format.cl, CL_MEM_OBJECT_IMAGE2D, CL_MEM_READ_WRITE))
      continue;
    ASSERT_NE(to, nullptr);
    const size_t row = size.width * ElementBytes(format.cl);
    const Bytes bytes = Pattern(format.cl, size.elements(), 3);
    app().Write(from.Get(), bytes, row, size.height);
    Own<cl_mem> in = From(from.Get());
    Own<cl_mem> out = From(to.Get());
    ThroughKernel(in, out);
    EXPECT_TRUE(app().Read(to.Get(), row, size.height) == Mirrored(format.cl, size, bytes));
  }
}

// A render target, which is not locked, and what was drawn there a moment ago.
TEST_P(Dx9Objects, RenderTarget) {
  const auto surface = app().RenderTarget(D3DFMT_A8R8G8B8, 40, 30);
  ASSERT_NE(surface, nullptr);
  ASSERT_EQ(app().device()->ColorFill(surface.Get(), nullptr, D3DCOLOR_ARGB(1, 2, 3, 4)), D3D_OK);
  Own<cl_mem> image = From(surface.Get());
  Bytes before;
  for (int i = 0; i < 40 * 30; ++i) before.insert(before.end(), {4, 3, 2, 1});
  const Bytes after = Pattern(kBgra8, 40 * 30, 2);
  ThroughImage(image, {40, 30}, before, after);
  EXPECT_TRUE(app().Download(surface.Get(), 40 * 4) == after);
}

// Levels of textures that can be locked and of such that cannot.
TEST_P(Dx9Objects, TextureLevels) {
  for (const DWORD usage : {DWORD{0}, DWORD{D3DUSAGE_DYNAMIC}, DWORD{D3DUSAGE_RENDERTARGET}}) {
    SCOPED_TRACE(usage);
    const UINT level = usage == D3DUSAGE_DYNAMIC ? 0 : 1;
    const auto surface = app().TextureLevel(D3DFMT_A8R8G8B8, 32, 16, level, usage);
    ASSERT_NE(surface, nullptr);
    const Size size = {32u >> level, 16u >> level};
    const Bytes before = Pattern(kBgra8, size.elements(), 1);
    const Bytes after = Pattern(kBgra8, size.elements(), 2);
    app().Upload(surface.Get(), before, size.width * 4);
    Own<cl_mem> image = From(surface.Get());
    ASSERT_NE(image.get(), nullptr);
    EXPECT_EQ(SizeOf(image).width, size.width);
    ThroughImage(image, size, before, after);
    EXPECT_TRUE(app().Download(surface.Get(), size.width * 4) == after);
  }
}

// NV12: a plane of luminance and one of half its size with both colours; writing one leaves the
// other.
TEST_P(Dx9Objects, Nv12Planes) {
  const auto surface = app().Offscreen(kNv12, 48, 32);
  ASSERT_NE(surface, nullptr);
  // Both planes have rows of 48 bytes: 32 of them, and 16.
  const Bytes both = Pattern(48 * 48, 1);
  app().Write(surface.Get(), both, 48, 48);
  Own<cl_mem> luma = From(surface.Get(), 0);
  From(surface.Get(), 2, CL_INVALID_VALUE);
  const Bytes new_luma = Pattern(kOne, 48 * 32, 5);
  ThroughImage(luma, {48, 32}, Bytes(both.begin(), both.begin() + 48 * 32), new_luma);
  Bytes expected = new_luma;
  expected.insert(expected.end(), both.begin() + 48 * 32, both.end());
  EXPECT_TRUE(app().Read(surface.Get(), 48, 48) == expected);
  if (!DeviceHas(kPair, CL_MEM_OBJECT_IMAGE2D, CL_MEM_READ_WRITE)) {
    From(surface.Get(), 1, CL_INVALID_IMAGE_FORMAT_DESCRIPTOR);
    GTEST_SKIP() << "the device has no CL_RG images: only the first plane was shared";
  }
  Own<cl_mem> chroma = From(surface.Get(), 1);
  EXPECT_EQ(FormatOf(chroma).image_channel_order, static_cast<cl_channel_order>(CL_RG));
  EXPECT_EQ(SizeOf(chroma).width, 24u);
  EXPECT_EQ(SizeOf(chroma).height, 16u);
  const Bytes new_chroma = Pattern(kPair, 24 * 16, 6);
  ThroughImage(chroma, {24, 16}, Bytes(both.begin() + 48 * 32, both.end()), new_chroma);
  expected = new_luma;
  expected.insert(expected.end(), new_chroma.begin(), new_chroma.end());
  EXPECT_TRUE(app().Read(surface.Get(), 48, 48) == expected);
}

// A kernel finds both planes of NV12 as Direct3D wrote them, and what it makes of them is there in
// another surface, the colours still in pairs.
TEST_P(Dx9Objects, Nv12ThroughKernel) {
  if (!DeviceHas(kPair, CL_MEM_OBJECT_IMAGE2D, CL_MEM_READ_WRITE))
    GTEST_SKIP() << "the device has no CL_RG images";
  const auto from = app().Offscreen(kNv12, 48, 32);
  const auto to = app().Offscreen(kNv12, 48, 32);
  const Bytes luma = Pattern(kOne, 48 * 32, 1);
  const Bytes chroma = Pattern(kPair, 24 * 16, 2);
  Bytes bytes = luma;
  bytes.insert(bytes.end(), chroma.begin(), chroma.end());
  app().Write(from.Get(), bytes, 48, 48);
  for (cl_uint plane = 0; plane < 2; ++plane) {
    Own<cl_mem> in = From(from.Get(), plane);
    Own<cl_mem> out = From(to.Get(), plane);
    ThroughKernel(in, out);
  }
  Bytes expected = Mirrored(kOne, {48, 32}, luma);
  const Bytes pairs = Mirrored(kPair, {24, 16}, chroma);
  expected.insert(expected.end(), pairs.begin(), pairs.end());
  EXPECT_TRUE(app().Read(to.Get(), 48, 48) == expected);
}

// YV12: luminance, then V, then U, of half its size each and at half its pitch.
TEST_P(Dx9Objects, Yv12Planes) {
  const auto surface = app().Offscreen(kYv12, 64, 32);
  ASSERT_NE(surface, nullptr);
  D3DLOCKED_RECT locked;
  ASSERT_EQ(surface->LockRect(&locked, nullptr, 0), D3D_OK);
  const size_t pitch = static_cast<size_t>(locked.Pitch);
  const size_t starts[] = {0, pitch * 32, pitch * 32 + pitch / 2 * 16};
  const size_t pitches[] = {pitch, pitch / 2, pitch / 2};
  const Size sizes[] = {{64, 32}, {32, 16}, {32, 16}};
  const auto fill = [&](uint8_t* bits, int plane, const Bytes& bytes) {
    for (size_t row = 0; row < sizes[plane].height; ++row) {
      std::copy_n(&bytes[row * sizes[plane].width], sizes[plane].width,
                  bits + starts[plane] + row * pitches[plane]);
    }
  };
  for (int plane = 0; plane < 3; ++plane) {
    fill(static_cast<uint8_t*>(locked.pBits), plane,
         Pattern(kOne, sizes[plane].elements(), static_cast<uint32_t>(plane)));
  }
  surface->UnlockRect();
  for (cl_uint plane = 0; plane < 3; ++plane) {
    SCOPED_TRACE(plane);
    Own<cl_mem> image = From(surface.Get(), plane);
    ASSERT_NE(image.get(), nullptr);
    EXPECT_EQ(SizeOf(image).width, sizes[plane].width);
    EXPECT_EQ(SizeOf(image).height, sizes[plane].height);
    ThroughImage(image, sizes[plane], Pattern(kOne, sizes[plane].elements(), plane),
                 Pattern(kOne, sizes[plane].elements(), 10 + plane));
  }
  From(surface.Get(), 3, CL_INVALID_VALUE);
  ASSERT_EQ(surface->LockRect(&locked, nullptr, D3DLOCK_READONLY), D3D_OK);
  for (int plane = 0; plane < 3; ++plane) {
    Bytes seen;
    for (size_t row = 0; row < sizes[plane].height; ++row) {
      const auto* from =
          static_cast<const uint8_t*>(locked.pBits) + starts[plane] + row * pitches[plane];
      seen.insert(seen.end(), from, from + sizes[plane].width);
    }
    EXPECT_TRUE(seen == Pattern(kOne, sizes[plane].elements(), static_cast<uint32_t>(10 + plane)))
        << plane;
  }
  surface->UnlockRect();
}

// Two threads wait for each other here. Thread-safe.
class Meeting {
 public:
  void Arrive() {
    std::unique_lock<std::mutex> lock(mutex_);
    const int met = met_;
    if (++arrived_ == 2) {
      arrived_ = 0;
      ++met_;
      changed_.notify_all();
    }
    changed_.wait(lock, [&] { return met_ != met; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int arrived_ = 0;
  int met_ = 0;
};

class Dx9Planes : public Dx9Objects {
 protected:
  struct Plane {
    cl_context context;
    cl_uint index;
    Size size;
  };

  // Writes through OpenCL and reads what the surface then has, in step with another thread.
  void Share(IDirect3DSurface9* surface, const Plane& plane, Meeting* meet) {
    cl_int status = CL_SUCCESS;
    Own<cl_command_queue> queue(clCreateCommandQueue(plane.context, device(), 0, &status));
    EXPECT_EQ(status, CL_SUCCESS);
    cl_dx9_surface_info_khr info = {surface, nullptr};
    Own<cl_mem> image(
        create_(plane.context, CL_MEM_READ_WRITE, type(), &info, plane.index, &status));
    EXPECT_EQ(status, CL_SUCCESS);
    const cl_mem list[] = {image};
    const size_t origin[3] = {};
    const size_t region[3] = {plane.size.width, plane.size.height, 1};
    Bytes seen(plane.size.elements());
    for (uint32_t round = 0; round < 30; ++round) {
      const Bytes bytes = Pattern(kOne, seen.size(), 10 * round + plane.index);
      meet->Arrive();
      EXPECT_EQ(acquire_(queue, 1, list, 0, nullptr, nullptr), CL_SUCCESS);
      EXPECT_EQ(clEnqueueWriteImage(queue, image, CL_TRUE, origin, region, 0, 0, bytes.data(), 0,
                                    nullptr, nullptr),
                CL_SUCCESS);
      meet->Arrive();
      EXPECT_EQ(release_(queue, 1, list, 0, nullptr, nullptr), CL_SUCCESS) << round;
      meet->Arrive();
      EXPECT_EQ(acquire_(queue, 1, list, 0, nullptr, nullptr), CL_SUCCESS);
      EXPECT_EQ(clEnqueueReadImage(queue, image, CL_TRUE, origin, region, 0, 0, seen.data(), 0,
                                   nullptr, nullptr),
                CL_SUCCESS);
      EXPECT_TRUE(seen == bytes) << round;
      EXPECT_EQ(release_(queue, 1, list, 0, nullptr, nullptr), CL_SUCCESS) << round;
      EXPECT_EQ(clFinish(queue), CL_SUCCESS) << round;
    }
  }
  void ShareTwo(cl_context first, cl_context second) {
    const auto surface = app().Offscreen(kYv12, 640, 360);
    ASSERT_NE(surface, nullptr);
    Meeting meet;
    std::thread other([&] { Share(surface.Get(), {second, 1, {320, 180}}, &meet); });
    Share(surface.Get(), {first, 0, {640, 360}}, &meet);
    other.join();
  }
};

// The planes of one surface are separate objects, though Direct3D locks it whole and once: threads
// that acquire and release one each at the same time get in nobody's way.
TEST_P(Dx9Planes, OfTwoThreads) { ShareTwo(context(), context()); }

// Also in contexts of their own.
TEST_P(Dx9Planes, OfTwoContexts) {
  cl_int status = CL_SUCCESS;
  Own<cl_context> second = NewContext(Properties(app().device()), &status);
  ASSERT_EQ(status, CL_SUCCESS);
  ShareTwo(context(), second);
}

// A surface that the application has locked fails what wants it, each plane's own; nothing waits
// for the application, and all is as before when it has unlocked it.
TEST_P(Dx9Planes, LockedByTheApplication) {
  const auto surface = app().Offscreen(kYv12, 64, 32);
  ASSERT_NE(surface, nullptr);
  Own<cl_mem> planes[] = {From(surface.Get(), 0), From(surface.Get(), 1)};
  D3DLOCKED_RECT locked;
  ASSERT_EQ(surface->LockRect(&locked, nullptr, 0), D3D_OK);
  for (const Own<cl_mem>& plane : planes) {
    Own<cl_event> acquired;
    ASSERT_EQ(Acquire(plane, acquired.Out()), CL_SUCCESS);
    EXPECT_EQ(clWaitForEvents(1, acquired.AsList()), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    EXPECT_EQ(conformance::StatusOf(acquired), CL_OUT_OF_RESOURCES);
    Own<cl_event> released;
    EXPECT_EQ(Release(plane, released.Out()), CL_SUCCESS);
    EXPECT_LT(conformance::StatusOf(released), 0);
  }
  EXPECT_EQ(surface->UnlockRect(), D3D_OK);
  for (const Own<cl_mem>& plane : planes) {
    EXPECT_EQ(Acquire(plane), CL_SUCCESS);
    EXPECT_EQ(Release(plane), CL_SUCCESS);
    EXPECT_EQ(clFinish(queue()), CL_SUCCESS);
  }
}

// A memory object has one reference of its surface until its last release, also after use.
TEST_P(Dx9Objects, MemoryHoldsItsSurface) {
  const auto surface = app().Offscreen(D3DFMT_A8R8G8B8, 8, 8);
  const ULONG before = References(surface.Get());
  for (int round = 0; round < 10; ++round) {
    Own<cl_mem> image = From(surface.Get());
    EXPECT_EQ(References(surface.Get()), before + 1);
    ThroughImage(image, {8, 8}, app().Read(surface.Get(), 32, 8), Pattern(kBgra8, 64, 3));
    ASSERT_EQ(clFinish(queue()), CL_SUCCESS);
    EXPECT_EQ(References(surface.Get()), before + 1);
    image.Reset();
    EXPECT_EQ(References(surface.Get()), before) << round;
  }
}

// A context has one reference of its device, and lets it go.
TEST_P(Dx9Objects, ContextLetsItsDeviceGo) {
  Dx9App other(is_ex(), true);
  const ULONG before = References(other.device());
  cl_int status = CL_SUCCESS;
  Own<cl_context> context = NewContext(Properties(other.device()), &status);
  ASSERT_EQ(status, CL_SUCCESS);
  EXPECT_EQ(References(other.device()), before + 1);
  context.Reset();
  EXPECT_EQ(References(other.device()), before);
}

// A device without D3DCREATE_MULTITHREADED is used on the calling thread alone, and what would have
// to wait for the application there is refused.
TEST_P(Dx9Objects, SingleThreadedDevice) {
  Dx9App single(is_ex(), /*multithreaded=*/false);
  ASSERT_TRUE(single.ok());
  LetContextGo();
  MakeContext(Properties(single.device()));
  const auto surface = single.Offscreen(D3DFMT_A8R8G8B8, 8, 8);
  const Bytes before = Pattern(kBgra8, 64, 1);
  single.Write(surface.Get(), before, 32, 8);
  Own<cl_mem> image = From(surface.Get());
  ThroughImage(image, {8, 8}, before, Pattern(kBgra8, 64, 2));
  EXPECT_TRUE(single.Read(surface.Get(), 32, 8) == Pattern(kBgra8, 64, 2));
  cl_int status = CL_SUCCESS;
  Own<cl_event> gate(clCreateUserEvent(context(), &status));
  EXPECT_EQ(Acquire(image), CL_SUCCESS) << "nothing waits for the event";
  EXPECT_EQ(Release(image), CL_SUCCESS);
  ASSERT_EQ(clEnqueueMarkerWithWaitList(queue(), 1, gate.AsList(), nullptr), CL_SUCCESS);
  EXPECT_EQ(Acquire(image), CL_INVALID_OPERATION);
  ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
  EXPECT_EQ(Acquire(image), CL_SUCCESS);
  EXPECT_EQ(Release(image), CL_SUCCESS);
}

// Goes with the surface that keeps it, and tells on which thread that was.
class SurfaceEnd final : public IUnknown {
 public:
  explicit SurfaceEnd(std::shared_ptr<std::atomic<DWORD>> ended_on)
      : ended_on_(std::move(ended_on)) {}
  HRESULT STDMETHODCALLTYPE QueryInterface(REFIID, void** out) override {
    *out = nullptr;
    return E_NOINTERFACE;
  }
  ULONG STDMETHODCALLTYPE AddRef() override { return ++references_; }
  ULONG STDMETHODCALLTYPE Release() override {
    const ULONG left = --references_;
    if (left != 0) return left;
    *ended_on_ = ::GetCurrentThreadId();
    delete this;
    return 0;
  }

 private:
  std::atomic<ULONG> references_{0};
  const std::shared_ptr<std::atomic<DWORD>> ended_on_;
};

// The surface and the device of one thread go on that thread, also if a command's end on another
// one was all that still kept them.
TEST_P(Dx9Objects, SingleThreadedDeviceGoesOnItsThread) {
  Dx9App single(is_ex(), /*multithreaded=*/false);
  ASSERT_TRUE(single.ok());
  LetContextGo();
  const ULONG before = References(single.device());
  MakeContext(Properties(single.device()));
  auto surface = single.Offscreen(D3DFMT_A8R8G8B8, 8, 8);
  const auto ended_on = std::make_shared<std::atomic<DWORD>>(0);
  Com<IUnknown> end(new SurfaceEnd(ended_on));
  ASSERT_EQ(
      surface->SetPrivateData(__uuidof(IUnknown), end.Get(), sizeof(IUnknown*), D3DSPD_IUNKNOWN),
      D3D_OK);
  Own<cl_mem> image = From(surface.Get());
  ASSERT_EQ(Acquire(image), CL_SUCCESS);
  cl_int status = CL_SUCCESS;
  Own<cl_event> gate(clCreateUserEvent(context(), &status));
  ASSERT_EQ(status, CL_SUCCESS);
  const size_t origin[3] = {}, region[3] = {8, 8, 1};
  Bytes bytes(8 * 8 * 4);
  Own<cl_event> read;
  ASSERT_EQ(clEnqueueReadImage(queue(), image, CL_FALSE, origin, region, 0, 0, bytes.data(), 1,
                               gate.AsList(), read.Out()),
            CL_SUCCESS);
  std::promise<void> completed;
  ASSERT_EQ(
      clSetEventCallback(
          read, CL_COMPLETE,
          [](cl_event, cl_int, void* told) { static_cast<std::promise<void>*>(told)->set_value(); },
          &completed),
      CL_SUCCESS);
  end.Reset();
  surface.Reset();
  image.Reset();
  read.Reset();
  LetContextGo();
  ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
  gate.Reset();
  completed.get_future().wait();
  // Any call that comes to the driver will do.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  cl_uint devices = 0;
  while (References(single.device()) != before && std::chrono::steady_clock::now() < deadline)
    clGetDeviceIDs(platform(), CL_DEVICE_TYPE_ALL, 0, nullptr, &devices);
  EXPECT_EQ(ended_on->load(), ::GetCurrentThreadId());
  EXPECT_EQ(References(single.device()), before);
}

INSTANTIATE_TEST_SUITE_P(, Dx9Planes, testing::Values(CL_ADAPTER_D3D9_KHR, CL_ADAPTER_D3D9EX_KHR),
                         ApiName);
INSTANTIATE_TEST_SUITE_P(, Dx9Objects, testing::Values(CL_ADAPTER_D3D9_KHR, CL_ADAPTER_D3D9EX_KHR),
                         ApiName);

}  // namespace
}  // namespace sluice::d3dtest
