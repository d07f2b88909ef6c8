// SPDX-License-Identifier: Apache-2.0
// Every error code of cl_khr_dx9_media_sharing, and DXVA adapters.
#include <d3d9.h>
#include <dxvahd.h>

#include <vector>

#include "tests/sharing/d3d/dx9_fixture.h"

namespace sluice::d3dtest {
namespace {

// A DXVA device on a Direct3D device: where there is no dxva2.dll that makes one (Wine), this says
// what the driver asks of it. Lives on the test's stack.
class FakeDxva final : public IDXVAHD_Device {
 public:
  explicit FakeDxva(IDirect3DDevice9* device) : device_(device) {}
  ULONG count() const { return count_; }

  HRESULT STDMETHODCALLTYPE QueryInterface(REFIID id, void** out) override {
    const bool known = IsEqualIID(id, IID_IUnknown) || IsEqualIID(id, __uuidof(IDXVAHD_Device));
    *out = known ? this : nullptr;
    if (!known) return E_NOINTERFACE;
    AddRef();
    return S_OK;
  }
  ULONG STDMETHODCALLTYPE AddRef() override { return ++count_; }
  ULONG STDMETHODCALLTYPE Release() override { return --count_; }
  HRESULT STDMETHODCALLTYPE CreateVideoSurface(UINT width, UINT height, D3DFORMAT format,
                                               D3DPOOL pool, DWORD, DXVAHD_SURFACE_TYPE, UINT count,
                                               IDirect3DSurface9** surfaces, HANDLE*) override {
    if (count != 1) return E_INVALIDARG;
    return device_->CreateOffscreenPlainSurface(width, height, format, pool, surfaces, nullptr);
  }
  HRESULT STDMETHODCALLTYPE GetVideoProcessorDeviceCaps(DXVAHD_VPDEVCAPS*) override {
    return E_NOTIMPL;
  }
  HRESULT STDMETHODCALLTYPE GetVideoProcessorOutputFormats(UINT, D3DFORMAT*) override {
    return E_NOTIMPL;
  }
  HRESULT STDMETHODCALLTYPE GetVideoProcessorInputFormats(UINT, D3DFORMAT*) override {
    return E_NOTIMPL;
  }
  HRESULT STDMETHODCALLTYPE GetVideoProcessorCaps(UINT, DXVAHD_VPCAPS*) override {
    return E_NOTIMPL;
  }
  HRESULT STDMETHODCALLTYPE GetVideoProcessorCustomRates(const GUID*, UINT,
                                                         DXVAHD_CUSTOM_RATE_DATA*) override {
    return E_NOTIMPL;
  }
  HRESULT STDMETHODCALLTYPE GetVideoProcessorFilterRange(DXVAHD_FILTER,
                                                         DXVAHD_FILTER_RANGE_DATA*) override {
    return E_NOTIMPL;
  }
  HRESULT STDMETHODCALLTYPE CreateVideoProcessor(const GUID*, IDXVAHD_VideoProcessor**) override {
    return E_NOTIMPL;
  }

 private:
  IDirect3DDevice9* const device_;
  ULONG count_ = 1;
};

class Dx9Refusals : public WithDx9 {
 protected:
  cl_int ContextStatus(const std::vector<cl_context_properties>& properties) {
    cl_int status = CL_SUCCESS;
    NewContext(properties, &status);
    return status;
  }
  cl_int Devices(cl_dx9_media_adapter_type_khr type, void* adapter,
                 cl_dx9_media_adapter_set_khr set) {
    cl_uint count = 0;
    return get_devices_(platform(), 1, &type, &adapter, set, 0, nullptr, &count);
  }
};

// All devices share; none is on the adapter, since they are on another machine.
TEST_P(Dx9Refusals, Devices) {
  cl_uint expected = 0;
  ASSERT_EQ(clGetDeviceIDs(platform(), CL_DEVICE_TYPE_ALL, 0, nullptr, &expected), CL_SUCCESS);
  cl_dx9_media_adapter_type_khr types[] = {GetParam(), GetParam()};
  void* adapters[] = {app().device(), app().device()};
  for (const cl_uint adapter_count : {1u, 2u}) {
    cl_uint count = 0;
    cl_device_id one = nullptr;
    EXPECT_EQ(get_devices_(platform(), adapter_count, types, adapters,
                           CL_ALL_DEVICES_FOR_DX9_MEDIA_ADAPTER_KHR, 1, &one, &count),
              CL_SUCCESS);
    EXPECT_EQ(count, expected);
    EXPECT_NE(one, nullptr);
  }
  EXPECT_EQ(Devices(GetParam(), app().device(), CL_PREFERRED_DEVICES_FOR_DX9_MEDIA_ADAPTER_KHR),
            CL_DEVICE_NOT_FOUND);
}

// CL_INVALID_PLATFORM and each CL_INVALID_VALUE of the query for devices.
TEST_P(Dx9Refusals, DeviceQueryCodes) {
  constexpr auto kAll = CL_ALL_DEVICES_FOR_DX9_MEDIA_ADAPTER_KHR;
  cl_dx9_media_adapter_type_khr type = GetParam();
  void* adapter = app().device();
  cl_uint count = 0;
  cl_device_id one = nullptr;
  EXPECT_EQ(get_devices_(nullptr, 1, &type, &adapter, kAll, 0, nullptr, &count),
            CL_INVALID_PLATFORM);
  EXPECT_EQ(get_devices_(platform(), 0, &type, &adapter, kAll, 0, nullptr, &count),
            CL_INVALID_VALUE);
  EXPECT_EQ(get_devices_(platform(), 1, nullptr, &adapter, kAll, 0, nullptr, &count),
            CL_INVALID_VALUE);
  EXPECT_EQ(get_devices_(platform(), 1, &type, nullptr, kAll, 0, nullptr, &count),
            CL_INVALID_VALUE);
  EXPECT_EQ(get_devices_(platform(), 1, &type, &adapter, GetParam(), 0, nullptr, &count),
            CL_INVALID_VALUE);
  EXPECT_EQ(get_devices_(platform(), 1, &type, &adapter, kAll, 0, &one, &count), CL_INVALID_VALUE);
  EXPECT_EQ(get_devices_(platform(), 1, &type, &adapter, kAll, 0, nullptr, nullptr),
            CL_INVALID_VALUE);
  EXPECT_EQ(Devices(kAll, app().device(), kAll), CL_INVALID_VALUE);
  EXPECT_EQ(Devices(GetParam(), nullptr, kAll), CL_INVALID_VALUE);
  const auto surface = app().Offscreen(D3DFMT_A8R8G8B8, 4, 4);
  EXPECT_EQ(Devices(GetParam(), surface.Get(), kAll), CL_INVALID_VALUE);
}

// CL_INVALID_DX9_MEDIA_ADAPTER_KHR for what is no such adapter, by type; null asks for nothing.
TEST_P(Dx9Refusals, ContextCodes) {
  const auto surface = app().Offscreen(D3DFMT_A8R8G8B8, 4, 4);
  EXPECT_EQ(ContextStatus(Properties(surface.Get())), CL_INVALID_DX9_MEDIA_ADAPTER_KHR);
  EXPECT_EQ(ContextStatus(Properties(nullptr)), CL_SUCCESS);
  std::vector<cl_context_properties> wrong = Properties(app().device());
  wrong[2] = CL_CONTEXT_ADAPTER_DXVA_KHR;
  EXPECT_EQ(ContextStatus(wrong), CL_INVALID_DX9_MEDIA_ADAPTER_KHR);
  // An Ex device is one of Direct3D 9 too; the reverse is not so.
  wrong[2] = is_ex() ? CL_CONTEXT_ADAPTER_D3D9_KHR : CL_CONTEXT_ADAPTER_D3D9EX_KHR;
  EXPECT_EQ(ContextStatus(wrong), is_ex() ? CL_SUCCESS : CL_INVALID_DX9_MEDIA_ADAPTER_KHR);
}

// CL_INVALID_CONTEXT, CL_INVALID_VALUE (flags, plane), CL_INVALID_OPERATION (an adapter type that
// the context was not made for).
TEST_P(Dx9Refusals, CreateCodes) {
  const auto surface = app().Offscreen(D3DFMT_A8R8G8B8, 8, 8);
  cl_dx9_surface_info_khr info = {surface.Get(), nullptr};
  cl_int status = CL_SUCCESS;
  EXPECT_EQ(create_(nullptr, CL_MEM_READ_WRITE, GetParam(), &info, 0, &status), nullptr);
  EXPECT_EQ(status, CL_INVALID_CONTEXT);
  Own<cl_context> plain = conformance::WithPlatform::NewContext();
  EXPECT_EQ(create_(plain, CL_MEM_READ_WRITE, GetParam(), &info, 0, &status), nullptr);
  EXPECT_EQ(status, CL_INVALID_CONTEXT);
  From(surface.Get(), 0, CL_INVALID_VALUE, CL_MEM_USE_HOST_PTR);
  From(surface.Get(), 1, CL_INVALID_VALUE);
  From(CL_ADAPTER_DXVA_KHR, &info, 0, CL_INVALID_OPERATION);
  From(12345, &info, 0, CL_INVALID_OPERATION);
}

// CL_INVALID_DX9_MEDIA_SURFACE_KHR: nothing, not a surface, another pool, another device, a bad
// handle, multisampled, made twice. CL_INVALID_IMAGE_FORMAT_DESCRIPTOR: formats beside the tables.
TEST_P(Dx9Refusals, Surfaces) {
  constexpr cl_int kInvalid = CL_INVALID_DX9_MEDIA_SURFACE_KHR;
  From(GetParam(), nullptr, 0, kInvalid);
  From(nullptr, 0, kInvalid);
  From(reinterpret_cast<IDirect3DSurface9*>(app().device()), 0, kInvalid);
  const auto memory = app().Offscreen(D3DFMT_A8R8G8B8, 8, 8, D3DPOOL_SYSTEMMEM);
  From(memory.Get(), 0, kInvalid);
  Dx9App other(is_ex(), true);
  const auto foreign = other.Offscreen(D3DFMT_A8R8G8B8, 8, 8);
  From(foreign.Get(), 0, kInvalid);
  const auto surface = app().Offscreen(D3DFMT_A8R8G8B8, 8, 8);
  cl_dx9_surface_info_khr info = {surface.Get(), INVALID_HANDLE_VALUE};
  From(GetParam(), &info, 0, kInvalid);
  const auto multisampled = app().RenderTarget(D3DFMT_A8R8G8B8, 8, 8, D3DMULTISAMPLE_4_SAMPLES);
  if (multisampled != nullptr) From(multisampled.Get(), 0, kInvalid);
  for (const D3DFORMAT format : {D3DFMT_R5G6B5, kYuy2}) {
    const auto unlisted = app().Offscreen(format, 8, 8);
    ASSERT_NE(unlisted, nullptr);
    From(unlisted.Get(), 0, CL_INVALID_IMAGE_FORMAT_DESCRIPTOR);
  }
  Own<cl_mem> first = From(surface.Get());
  From(surface.Get(), 0, kInvalid);
  first.Reset();
  Own<cl_mem> again = From(surface.Get());
}

// Only the three access flags can be used, one at a time; errcode_ret may be null.
TEST_P(Dx9Refusals, Flags) {
  const auto surface = app().Offscreen(D3DFMT_A8R8G8B8, 8, 8);
  for (const cl_mem_flags flags :
       {cl_mem_flags{CL_MEM_USE_HOST_PTR}, cl_mem_flags{CL_MEM_ALLOC_HOST_PTR},
        cl_mem_flags{CL_MEM_COPY_HOST_PTR}, cl_mem_flags{CL_MEM_HOST_NO_ACCESS},
        cl_mem_flags{CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY}}) {
    From(surface.Get(), 0, CL_INVALID_VALUE, flags);
  }
  for (const cl_mem_flags flags : {cl_mem_flags{CL_MEM_READ_ONLY}, cl_mem_flags{CL_MEM_WRITE_ONLY},
                                   cl_mem_flags{CL_MEM_READ_WRITE}}) {
    Own<cl_mem> image = From(surface.Get(), 0, CL_SUCCESS, flags);
    cl_mem_flags seen = 0;
    EXPECT_EQ(clGetMemObjectInfo(image, CL_MEM_FLAGS, sizeof(seen), &seen, nullptr), CL_SUCCESS);
    EXPECT_EQ(seen, flags);
  }
  cl_dx9_surface_info_khr info = {surface.Get(), nullptr};
  Own<cl_mem> quiet(create_(context(), CL_MEM_READ_WRITE, GetParam(), &info, 0, nullptr));
  EXPECT_NE(quiet.get(), nullptr);
}

// A second context of the same device is refused the plane that the first has, until that is gone.
TEST_P(Dx9Refusals, SurfacesInTwoContexts) {
  cl_int status = CL_SUCCESS;
  Own<cl_context> second = NewContext(Properties(app().device()), &status);
  ASSERT_EQ(status, CL_SUCCESS);
  const auto surface = app().Offscreen(kYv12, 16, 16);
  cl_dx9_surface_info_khr info = {surface.Get(), nullptr};
  const auto in_second = [&](cl_uint plane) {
    const Own<cl_mem> image(create_(second, CL_MEM_READ_WRITE, GetParam(), &info, plane, &status));
    return status;
  };
  Own<cl_mem> image = From(surface.Get(), 1);
  EXPECT_EQ(in_second(1), CL_INVALID_DX9_MEDIA_SURFACE_KHR);
  EXPECT_EQ(in_second(2), CL_SUCCESS);
  image.Reset();
  EXPECT_EQ(in_second(1), CL_SUCCESS);
}

// "If shared_handle is not NULL or a valid handle value": a surface of plain Direct3D 9 has none,
// and that of an Ex device is told as it was given.
TEST_P(Dx9Refusals, SharedHandles) {
  const auto surface = app().Offscreen(D3DFMT_A8R8G8B8, 8, 8);
  const HANDLE handle = ::CreateEventA(nullptr, TRUE, FALSE, nullptr);
  cl_dx9_surface_info_khr info = {surface.Get(), handle};
  Own<cl_mem> image =
      From(GetParam(), &info, 0, is_ex() ? CL_SUCCESS : CL_INVALID_DX9_MEDIA_SURFACE_KHR);
  if (is_ex()) {
    cl_dx9_surface_info_khr seen = {};
    EXPECT_EQ(
        clGetMemObjectInfo(image, CL_MEM_DX9_MEDIA_SURFACE_INFO_KHR, sizeof(seen), &seen, nullptr),
        CL_SUCCESS);
    EXPECT_EQ(seen.resource, surface.Get());
    EXPECT_EQ(seen.shared_handle, handle);
  }
  ::CloseHandle(handle);
}

// Of a surface of odd size there is no plane of half that size; its luminance is one.
TEST_P(Dx9Refusals, OddPlanes) {
  for (const D3DFORMAT format : {kNv12, kYv12}) {
    for (const auto& [width, height] : {std::pair(33u, 16u), std::pair(16u, 33u)}) {
      SCOPED_TRACE(testing::Message() << width << " x " << height);
      const auto surface = app().Offscreen(format, width, height);
      if (surface == nullptr) continue;  // Direct3D makes none such here.
      Own<cl_mem> luma = From(surface.Get(), 0);
      EXPECT_EQ(SizeOf(luma).width, width);
      EXPECT_EQ(SizeOf(luma).height, height);
      From(surface.Get(), 1, CL_INVALID_VALUE);
      if (format == kYv12) From(surface.Get(), 2, CL_INVALID_VALUE);
    }
  }
}

// Adapter type, surface and plane are told; objects without answer with the extension's code.
TEST_P(Dx9Refusals, Queries) {
  const auto surface = app().Offscreen(kYv12, 16, 16);
  Own<cl_mem> image = From(surface.Get(), 1);
  cl_dx9_media_adapter_type_khr type = 0;
  EXPECT_EQ(
      clGetMemObjectInfo(image, CL_MEM_DX9_MEDIA_ADAPTER_TYPE_KHR, sizeof(type), &type, nullptr),
      CL_SUCCESS);
  EXPECT_EQ(type, GetParam());
  cl_dx9_surface_info_khr info = {};
  EXPECT_EQ(
      clGetMemObjectInfo(image, CL_MEM_DX9_MEDIA_SURFACE_INFO_KHR, sizeof(info), &info, nullptr),
      CL_SUCCESS);
  EXPECT_EQ(info.resource, surface.Get());
  EXPECT_EQ(info.shared_handle, nullptr);
  cl_uint plane = 9;
  EXPECT_EQ(clGetImageInfo(image, CL_IMAGE_DX9_MEDIA_PLANE_KHR, sizeof(plane), &plane, nullptr),
            CL_SUCCESS);
  EXPECT_EQ(plane, 1u);
  EXPECT_EQ(clGetMemObjectInfo(image, CL_MEM_DX9_MEDIA_SURFACE_INFO_KHR, 1, &info, nullptr),
            CL_INVALID_VALUE);
  Own<cl_context> no_api = conformance::WithPlatform::NewContext();
  for (const cl_context one : {context(), no_api.get()}) {
    const Own<cl_mem> plain = PlainImage(one);
    EXPECT_EQ(
        clGetMemObjectInfo(plain, CL_MEM_DX9_MEDIA_SURFACE_INFO_KHR, sizeof(info), &info, nullptr),
        CL_INVALID_DX9_MEDIA_SURFACE_KHR);
    EXPECT_EQ(clGetImageInfo(plain, CL_IMAGE_DX9_MEDIA_PLANE_KHR, sizeof(plane), &plane, nullptr),
              CL_INVALID_DX9_MEDIA_SURFACE_KHR);
    // Section 9.7.6 gives this one no code of its own.
    EXPECT_EQ(
        clGetMemObjectInfo(plain, CL_MEM_DX9_MEDIA_ADAPTER_TYPE_KHR, sizeof(type), &type, nullptr),
        CL_INVALID_VALUE);
  }
  ExpectNoOtherApi(image, image, CL_MEM_DX9_MEDIA_SURFACE_INFO_KHR);
}

// The codes of acquire, release and use, in and out of turn.
TEST_P(Dx9Refusals, AcquireAndRelease) {
  const auto surface = app().Offscreen(D3DFMT_A8R8G8B8, 8, 8);
  Own<cl_mem> image = From(surface.Get());
  cl_int status = CL_SUCCESS;
  Own<cl_mem> plain(clCreateBuffer(context(), CL_MEM_READ_WRITE, 64, nullptr, &status));
  Own<cl_context> no_api = conformance::WithPlatform::NewContext();
  Own<cl_command_queue> no_api_queue(clCreateCommandQueue(no_api, device(), 0, &status));
  const cl_mem list[] = {image};
  const cl_mem plain_list[] = {plain};
  const cl_mem null_list[] = {nullptr};
  const cl_event null_event[] = {nullptr};
  Own<cl_context> second = NewContext(Properties(app().device()), &status);
  Own<cl_command_queue> second_queue(clCreateCommandQueue(second, device(), 0, &status));
  Own<cl_event> second_event(clCreateUserEvent(second, &status));
  ASSERT_EQ(clSetUserEventStatus(second_event, CL_COMPLETE), CL_SUCCESS);
  for (const auto call : {acquire_, release_}) {
    // Another context's object and event (section 5.2's words for all enqueues).
    EXPECT_EQ(call(second_queue, 1, list, 0, nullptr, nullptr), CL_INVALID_CONTEXT);
    EXPECT_EQ(call(queue(), 1, list, 1, second_event.AsList(), nullptr), CL_INVALID_CONTEXT);
    EXPECT_EQ(call(queue(), 0, nullptr, 0, nullptr, nullptr), CL_SUCCESS);
    EXPECT_EQ(call(queue(), 0, list, 0, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(call(queue(), 1, nullptr, 0, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(call(nullptr, 1, list, 0, nullptr, nullptr), CL_INVALID_COMMAND_QUEUE);
    EXPECT_EQ(call(no_api_queue, 1, list, 0, nullptr, nullptr), CL_INVALID_CONTEXT);
    EXPECT_EQ(call(queue(), 1, plain_list, 0, nullptr, nullptr), CL_INVALID_MEM_OBJECT);
    EXPECT_EQ(call(queue(), 1, null_list, 0, nullptr, nullptr), CL_INVALID_MEM_OBJECT);
    EXPECT_EQ(call(queue(), 1, list, 1, nullptr, nullptr), CL_INVALID_EVENT_WAIT_LIST);
    EXPECT_EQ(call(queue(), 1, list, 0, null_event, nullptr), CL_INVALID_EVENT_WAIT_LIST);
    EXPECT_EQ(call(queue(), 1, list, 1, null_event, nullptr), CL_INVALID_EVENT_WAIT_LIST);
  }
  uint8_t pixels[256];
  const size_t zero[3] = {0, 0, 0};
  const size_t whole[3] = {8, 8, 1};
  EXPECT_EQ(
      clEnqueueReadImage(queue(), image, CL_TRUE, zero, whole, 0, 0, pixels, 0, nullptr, nullptr),
      CL_DX9_MEDIA_SURFACE_NOT_ACQUIRED_KHR);
  EXPECT_EQ(Release(image), CL_DX9_MEDIA_SURFACE_NOT_ACQUIRED_KHR);
  EXPECT_EQ(Acquire(image), CL_SUCCESS);
  EXPECT_EQ(Acquire(image), CL_DX9_MEDIA_SURFACE_ALREADY_ACQUIRED_KHR);
  EXPECT_EQ(
      clEnqueueReadImage(queue(), image, CL_TRUE, zero, whole, 0, 0, pixels, 0, nullptr, nullptr),
      CL_SUCCESS);
  EXPECT_EQ(Release(image), CL_SUCCESS);
  EXPECT_EQ(Release(image), CL_DX9_MEDIA_SURFACE_NOT_ACQUIRED_KHR);
}

// A call with one bad object among several changes nothing.
TEST_P(Dx9Refusals, OneBadObjectOfSeveral) {
  const auto surface = app().Offscreen(D3DFMT_A8R8G8B8, 8, 8);
  const auto other_surface = app().Offscreen(D3DFMT_A8R8G8B8, 8, 8);
  Own<cl_mem> image = From(surface.Get());
  Own<cl_mem> other = From(other_surface.Get());
  const cl_mem both[] = {other, image};
  ASSERT_EQ(Acquire(image), CL_SUCCESS);
  EXPECT_EQ(acquire_(queue(), 2, both, 0, nullptr, nullptr),
            CL_DX9_MEDIA_SURFACE_ALREADY_ACQUIRED_KHR);
  EXPECT_EQ(Release(other), CL_DX9_MEDIA_SURFACE_NOT_ACQUIRED_KHR);
  const cl_mem bad_last[] = {image, other};
  EXPECT_EQ(release_(queue(), 2, bad_last, 0, nullptr, nullptr),
            CL_DX9_MEDIA_SURFACE_NOT_ACQUIRED_KHR);
  EXPECT_EQ(Release(image), CL_SUCCESS);
  const cl_mem twice[] = {image, image};
  EXPECT_EQ(acquire_(queue(), 2, twice, 0, nullptr, nullptr),
            CL_DX9_MEDIA_SURFACE_ALREADY_ACQUIRED_KHR);
  ASSERT_EQ(acquire_(queue(), 2, both, 0, nullptr, nullptr), CL_SUCCESS);
  EXPECT_EQ(release_(queue(), 2, both, 0, nullptr, nullptr), CL_SUCCESS);
}

// A surface that is not acquired is refused by whatever would use it.
TEST_P(Dx9Refusals, UseWhileReleased) {
  const auto surface = app().Offscreen(D3DFMT_A8R8G8B8, 8, 8);
  Own<cl_mem> image = From(surface.Get());
  Own<cl_mem> plain = PlainBuffer(context());
  Own<cl_kernel> kernel = BuildKernel(
      "kernel void set(write_only image2d_t out) {"
      "  write_imagef(out, (int2)(get_global_id(0), 0), (float4)(1.0f)); }",
      "set");
  conformance::SetArg(kernel, 0, image);
  uint8_t pixels[256] = {};
  const float colour[4] = {};
  const size_t zero[3] = {};
  const size_t whole[3] = {8, 8, 1};
  const size_t one[3] = {1, 1, 1};
  const auto use_all = [&](cl_int expected) {
    EXPECT_EQ(conformance::Launch(queue(), kernel, 8), expected);
    EXPECT_EQ(clEnqueueWriteImage(queue(), image, CL_TRUE, zero, whole, 0, 0, pixels, 0, nullptr,
                                  nullptr),
              expected);
    EXPECT_EQ(clEnqueueFillImage(queue(), image, colour, zero, whole, 0, nullptr, nullptr),
              expected);
    EXPECT_EQ(clEnqueueCopyImageToBuffer(queue(), image, plain, zero, one, 0, 0, nullptr, nullptr),
              expected);
    size_t pitch = 0;
    cl_int status = CL_SUCCESS;
    void* mapped = clEnqueueMapImage(queue(), image, CL_TRUE, CL_MAP_READ, zero, whole, &pitch,
                                     nullptr, 0, nullptr, nullptr, &status);
    EXPECT_EQ(status, expected);
    if (mapped != nullptr) clEnqueueUnmapMemObject(queue(), image, mapped, 0, nullptr, nullptr);
  };
  use_all(CL_DX9_MEDIA_SURFACE_NOT_ACQUIRED_KHR);
  ASSERT_EQ(Acquire(image), CL_SUCCESS);
  use_all(CL_SUCCESS);
  ASSERT_EQ(Release(image), CL_SUCCESS);
  use_all(CL_DX9_MEDIA_SURFACE_NOT_ACQUIRED_KHR);
}

// A DXVA adapter is found out by a surface that it makes; its surfaces are shared as others, and it
// is let go.
TEST_P(Dx9Refusals, Dxva) {
  FakeDxva dxva(app().device());
  std::vector<cl_context_properties> properties = Properties(&dxva);
  properties[2] = CL_CONTEXT_ADAPTER_DXVA_KHR;
  LetContextGo();
  MakeContext(properties);
  EXPECT_EQ(dxva.count(), 2u);
  const auto surface = app().Offscreen(kNv12, 32, 16);
  const Bytes before = Pattern(32 * 24, 1);
  app().Write(surface.Get(), before, 32, 24);
  cl_dx9_surface_info_khr info = {surface.Get(), nullptr};
  Own<cl_mem> image = From(CL_ADAPTER_DXVA_KHR, &info, 0, CL_SUCCESS);
  ASSERT_EQ(Acquire(image), CL_SUCCESS);
  EXPECT_TRUE(ReadImage(image, {32, 16}) == Bytes(before.begin(), before.begin() + 32 * 16));
  ASSERT_EQ(Release(image), CL_SUCCESS);
  From(GetParam(), &info, 0, CL_INVALID_OPERATION);
  EXPECT_EQ(Devices(CL_ADAPTER_DXVA_KHR, &dxva, CL_ALL_DEVICES_FOR_DX9_MEDIA_ADAPTER_KHR),
            CL_SUCCESS);
  image.Reset();
  LetContextGo();
  EXPECT_EQ(dxva.count(), 1u);
}

INSTANTIATE_TEST_SUITE_P(, Dx9Refusals, testing::Values(CL_ADAPTER_D3D9_KHR, CL_ADAPTER_D3D9EX_KHR),
                         ApiName);

}  // namespace
}  // namespace sluice::d3dtest
