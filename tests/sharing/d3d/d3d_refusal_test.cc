// SPDX-License-Identifier: Apache-2.0
// Every error code of cl_khr_d3d10_sharing, cl_khr_d3d11_sharing and cl_nv_d3d11_sharing.
#include <d3d9.h>

#include <cstring>
#include <vector>

#include "tests/sharing/d3d/d3d_fixture.h"

namespace sluice::d3dtest {
namespace {

template <typename E>
class D3dRefusals : public WithD3d<E> {
 protected:
  cl_int ContextStatus(const std::vector<cl_context_properties>& properties) {
    cl_int status = CL_SUCCESS;
    this->NewContext(properties, &status);
    return status;
  }
  cl_int Devices(cl_uint source, void* object, cl_uint set) {
    cl_uint count = 0;
    return this->get_devices_(this->platform(), source, object, set, 0, nullptr, &count);
  }
  Com<typename E::Buffer> SomeBuffer() {
    const Bytes bytes = Pattern(256, 1);
    return this->app().Buffer(bytes.size(), bytes.data());
  }
};
TYPED_TEST_SUITE(D3dRefusals, Extensions);

// All devices of the platform share, the one of the device and of its adapter; none is preferred,
// since they are on another machine.
TYPED_TEST(D3dRefusals, Devices) {
  Com<IDXGIDevice> dxgi;
  ASSERT_EQ(this->app().device()->QueryInterface(IID_PPV_ARGS(&dxgi)), S_OK);
  Com<IDXGIAdapter> adapter;
  ASSERT_EQ(dxgi->GetAdapter(&adapter), S_OK);
  cl_uint expected = 0;
  ASSERT_EQ(clGetDeviceIDs(this->platform(), CL_DEVICE_TYPE_ALL, 0, nullptr, &expected),
            CL_SUCCESS);
  const std::pair<cl_uint, void*> sources[] = {{TypeParam::kDeviceSource, this->app().device()},
                                               {TypeParam::kAdapterSource, adapter.Get()}};
  for (const auto& [source, object] : sources) {
    cl_uint count = 0;
    EXPECT_EQ(
        this->get_devices_(this->platform(), source, object, TypeParam::kAll, 0, nullptr, &count),
        CL_SUCCESS);
    EXPECT_EQ(count, expected);
    cl_device_id one = nullptr;
    EXPECT_EQ(
        this->get_devices_(this->platform(), source, object, TypeParam::kAll, 1, &one, nullptr),
        CL_SUCCESS);
    EXPECT_NE(one, nullptr);
    EXPECT_EQ(this->Devices(source, object, TypeParam::kPreferred), CL_DEVICE_NOT_FOUND);
  }
}

// CL_INVALID_PLATFORM, CL_INVALID_VALUE and CL_DEVICE_NOT_FOUND of the query for devices.
TYPED_TEST(D3dRefusals, DeviceQueryCodes) {
  void* device = this->app().device();
  cl_uint count = 0;
  cl_device_id one = nullptr;
  EXPECT_EQ(this->get_devices_(nullptr, TypeParam::kDeviceSource, device, TypeParam::kAll, 0,
                               nullptr, &count),
            CL_INVALID_PLATFORM);
  EXPECT_EQ(this->Devices(TypeParam::kAll, device, TypeParam::kAll), CL_INVALID_VALUE);
  EXPECT_EQ(this->Devices(TypeParam::kDeviceSource, device, TypeParam::kDeviceSource),
            CL_INVALID_VALUE);
  EXPECT_EQ(this->get_devices_(this->platform(), TypeParam::kDeviceSource, device, TypeParam::kAll,
                               0, &one, &count),
            CL_INVALID_VALUE);
  EXPECT_EQ(this->get_devices_(this->platform(), TypeParam::kDeviceSource, device, TypeParam::kAll,
                               0, nullptr, nullptr),
            CL_INVALID_VALUE);
  // Objects that are not what the source says have no devices.
  EXPECT_EQ(this->Devices(TypeParam::kDeviceSource, nullptr, TypeParam::kAll), CL_DEVICE_NOT_FOUND);
  const auto buffer = this->SomeBuffer();
  EXPECT_EQ(this->Devices(TypeParam::kDeviceSource, buffer.Get(), TypeParam::kAll),
            CL_DEVICE_NOT_FOUND);
  EXPECT_EQ(this->Devices(TypeParam::kAdapterSource, buffer.Get(), TypeParam::kAll),
            CL_DEVICE_NOT_FOUND);
}

// CL_INVALID_D3D1x_DEVICE for an object that is no such device; a null one asks for nothing.
TYPED_TEST(D3dRefusals, ContextCodes) {
  const auto buffer = this->SomeBuffer();
  EXPECT_EQ(this->ContextStatus(this->Properties(buffer.Get())), TypeParam::kInvalidDevice);
  EXPECT_EQ(this->ContextStatus(this->Properties(nullptr)), CL_SUCCESS);
  std::vector<cl_context_properties> twice = this->Properties(this->app().device());
  twice.insert(twice.end() - 1, {TypeParam::kProperty, twice[3]});
  EXPECT_EQ(this->ContextStatus(twice), CL_INVALID_PROPERTY);
  cl_int status = CL_SUCCESS;
  const std::vector<cl_context_properties> wrong = this->Properties(buffer.Get());
  Own<cl_context> context(
      clCreateContextFromType(wrong.data(), CL_DEVICE_TYPE_ALL, nullptr, nullptr, &status));
  EXPECT_EQ(status, TypeParam::kInvalidDevice);
}

// CL_INVALID_OPERATION for a context of two graphics APIs; CL_CONTEXT_INTEROP_USER_SYNC goes with
// one, in both values.
TYPED_TEST(D3dRefusals, OneApiPerContext) {
  D3dApp<Khr10> ten;
  D3dApp<Khr11> eleven;
  std::vector<cl_context_properties> both = {
      CL_CONTEXT_PLATFORM,
      reinterpret_cast<cl_context_properties>(this->platform()),
      CL_CONTEXT_D3D10_DEVICE_KHR,
      reinterpret_cast<cl_context_properties>(ten.device()),
      CL_CONTEXT_D3D11_DEVICE_KHR,
      reinterpret_cast<cl_context_properties>(eleven.device()),
      0};
  EXPECT_EQ(this->ContextStatus(both), CL_INVALID_OPERATION);
  both[5] = 0;  // A null device is none.
  EXPECT_EQ(this->ContextStatus(both), CL_SUCCESS);
  for (const cl_context_properties value : {CL_TRUE, CL_FALSE}) {
    std::vector<cl_context_properties> user_sync = this->Properties(this->app().device());
    user_sync.insert(user_sync.end() - 1, {CL_CONTEXT_INTEROP_USER_SYNC, value});
    EXPECT_EQ(this->ContextStatus(user_sync), CL_SUCCESS);
  }
}

// By staging it makes no difference how the resource was made.
TYPED_TEST(D3dRefusals, PreferSharedResources) {
  cl_bool prefer = CL_TRUE;
  size_t size = 0;
  EXPECT_EQ(
      clGetContextInfo(this->context(), TypeParam::kPreferShared, sizeof(prefer), &prefer, &size),
      CL_SUCCESS);
  EXPECT_EQ(size, sizeof(cl_bool));
  EXPECT_EQ(prefer, static_cast<cl_bool>(CL_FALSE));
}

// CL_INVALID_CONTEXT for one that is none, and for one that knows no Direct3D.
TYPED_TEST(D3dRefusals, CreateNeedsAContextOfThisApi) {
  const auto buffer = this->SomeBuffer();
  const auto texture = this->app().Texture2d(DXGI_FORMAT_R8G8B8A8_UNORM, 4, 4);
  const auto volume = this->app().Texture3d(DXGI_FORMAT_R8G8B8A8_UNORM, 4, 4, 4);
  Own<cl_context> plain = conformance::WithPlatform::NewContext();
  for (const cl_context context : {static_cast<cl_context>(nullptr), plain.get()}) {
    this->Checked(CL_INVALID_CONTEXT, [&](cl_int* error) {
      return this->create_buffer_(context, CL_MEM_READ_WRITE, buffer.Get(), error);
    });
    this->Checked(CL_INVALID_CONTEXT, [&](cl_int* error) {
      return this->create_texture2d_(context, CL_MEM_READ_WRITE, texture.Get(), 0, error);
    });
    this->Checked(CL_INVALID_CONTEXT, [&](cl_int* error) {
      return this->create_texture3d_(context, CL_MEM_READ_WRITE, volume.Get(), 0, error);
    });
  }
}

// Only the three access flags can be used, one at a time; errcode_ret may be null.
TYPED_TEST(D3dRefusals, Flags) {
  const auto buffer = this->SomeBuffer();
  for (const cl_mem_flags flags :
       {cl_mem_flags{CL_MEM_USE_HOST_PTR}, cl_mem_flags{CL_MEM_ALLOC_HOST_PTR},
        cl_mem_flags{CL_MEM_COPY_HOST_PTR}, cl_mem_flags{CL_MEM_HOST_NO_ACCESS},
        cl_mem_flags{CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY}}) {
    this->FromBuffer(buffer.Get(), CL_INVALID_VALUE, flags);
  }
  for (const cl_mem_flags flags : {cl_mem_flags{CL_MEM_READ_ONLY}, cl_mem_flags{CL_MEM_WRITE_ONLY},
                                   cl_mem_flags{CL_MEM_READ_WRITE}}) {
    Own<cl_mem> memory = this->FromBuffer(buffer.Get(), CL_SUCCESS, flags);
    cl_mem_flags seen = 0;
    EXPECT_EQ(clGetMemObjectInfo(memory, CL_MEM_FLAGS, sizeof(seen), &seen, nullptr), CL_SUCCESS);
    EXPECT_EQ(seen, flags);
  }
  Own<cl_mem> quiet(
      this->create_buffer_(this->context(), CL_MEM_READ_WRITE, buffer.Get(), nullptr));
  EXPECT_NE(quiet.get(), nullptr);
}

// CL_INVALID_D3D1x_RESOURCE for nothing, for the wrong kind, for an immutable and a multisampled
// resource, and for a second memory object of the same subresource.
TYPED_TEST(D3dRefusals, Resources) {
  constexpr cl_int kInvalid = TypeParam::kInvalidResource;
  this->FromBuffer(nullptr, kInvalid);
  this->FromTexture(static_cast<typename TypeParam::Texture2d*>(nullptr), 0, kInvalid);
  this->FromTexture(static_cast<typename TypeParam::Texture3d*>(nullptr), 0, kInvalid);
  const auto texture = this->app().Texture2d(DXGI_FORMAT_R8G8B8A8_UNORM, 8, 8, {2, 1});
  const auto volume = this->app().Texture3d(DXGI_FORMAT_R8G8B8A8_UNORM, 4, 4, 4);
  this->FromBuffer(reinterpret_cast<typename TypeParam::Buffer*>(texture.Get()), kInvalid);
  this->FromTexture(reinterpret_cast<typename TypeParam::Texture2d*>(volume.Get()), 0, kInvalid);
  this->FromTexture(reinterpret_cast<typename TypeParam::Texture3d*>(texture.Get()), 0, kInvalid);

  const Bytes bytes = Pattern(256, 1);
  const auto immutable = this->app().Buffer(256, bytes.data(), TypeParam::kImmutable);
  ASSERT_NE(immutable, nullptr);
  this->FromBuffer(immutable.Get(), kInvalid);
  const typename TypeParam::InitialData initial = {bytes.data(), 32, 0};
  const auto immutable_texture = this->app().Texture2d(DXGI_FORMAT_R8G8B8A8_UNORM, 8, 8,
                                                       {1, 1, TypeParam::kImmutable}, &initial);
  ASSERT_NE(immutable_texture, nullptr);
  this->FromTexture(immutable_texture.Get(), 0, kInvalid);
  typename TypeParam::Texture3dDesc of_volume;
  volume->GetDesc(&of_volume);
  of_volume.Usage = TypeParam::kImmutable;
  const typename TypeParam::InitialData slices = {bytes.data(), 16, 64};
  Com<typename TypeParam::Texture3d> immutable_volume;
  ASSERT_EQ(this->app().device()->CreateTexture3D(&of_volume, &slices, &immutable_volume), S_OK);
  this->FromTexture(immutable_volume.Get(), 0, kInvalid);

  typename TypeParam::Texture2dDesc desc;
  texture->GetDesc(&desc);
  desc.MipLevels = 1;
  desc.SampleDesc.Count = 4;
  desc.BindFlags = TypeParam::kRenderTarget;
  Com<typename TypeParam::Texture2d> multisampled;
  if (SUCCEEDED(this->app().device()->CreateTexture2D(&desc, nullptr, &multisampled))) {
    this->FromTexture(multisampled.Get(), 0, kInvalid);
  } else {
    std::printf("no multisampled textures here\n");
  }

  Own<cl_mem> first = this->FromTexture(texture.Get(), 1);
  this->FromTexture(texture.Get(), 1, kInvalid);
  Own<cl_mem> other_level = this->FromTexture(texture.Get(), 0);
  first.Reset();
  Own<cl_mem> again = this->FromTexture(texture.Get(), 1);
  const auto buffer = this->SomeBuffer();
  Own<cl_mem> memory = this->FromBuffer(buffer.Get());
  this->FromBuffer(buffer.Get(), kInvalid);
  Own<cl_mem> of_volume_image = this->FromTexture(volume.Get());
  this->FromTexture(volume.Get(), 0, kInvalid);
}

// "If a cl_mem from resource has already been created" (sections 9.6.7.3 to 9.8.7.5) names no
// context: a second context of the same device is refused what the first has, until that is gone.
TYPED_TEST(D3dRefusals, ResourcesInTwoContexts) {
  constexpr cl_int kInvalid = TypeParam::kInvalidResource;
  cl_int status = CL_SUCCESS;
  Own<cl_context> second = this->NewContext(this->Properties(this->app().device()), &status);
  ASSERT_EQ(status, CL_SUCCESS);
  const auto buffer = this->SomeBuffer();
  const auto texture = this->app().Texture2d(DXGI_FORMAT_R8G8B8A8_UNORM, 8, 8, {2, 1});
  const auto in_second = [&](cl_int expected, UINT level) {
    this->Checked(expected, [&](cl_int* error) {
      return this->create_buffer_(second, CL_MEM_READ_WRITE, buffer.Get(), error);
    });
    this->Checked(expected, [&](cl_int* error) {
      return this->create_texture2d_(second, CL_MEM_READ_WRITE, texture.Get(), level, error);
    });
  };
  Own<cl_mem> memory = this->FromBuffer(buffer.Get());
  Own<cl_mem> image = this->FromTexture(texture.Get(), 1);
  in_second(kInvalid, 1);
  Own<cl_mem> other_level(
      this->create_texture2d_(second, CL_MEM_READ_WRITE, texture.Get(), 0, &status));
  EXPECT_EQ(status, CL_SUCCESS);
  memory.Reset();
  image.Reset();
  in_second(CL_SUCCESS, 1);
}

// CL_INVALID_VALUE for a subresource that is not there.
TYPED_TEST(D3dRefusals, Subresources) {
  const auto texture = this->app().Texture2d(DXGI_FORMAT_R8G8B8A8_UNORM, 8, 8, {2, 3});
  const auto volume = this->app().Texture3d(DXGI_FORMAT_R8G8B8A8_UNORM, 4, 4, 4, 2);
  this->FromTexture(texture.Get(), 6, CL_INVALID_VALUE);
  this->FromTexture(texture.Get(), 0xffffffffu, CL_INVALID_VALUE);
  this->FromTexture(volume.Get(), 2, CL_INVALID_VALUE);
}

// The resource is told; objects that have none answer with the extension's code, and room that is
// too small with CL_INVALID_VALUE.
TYPED_TEST(D3dRefusals, Queries) {
  const auto buffer = this->SomeBuffer();
  const auto texture = this->app().Texture2d(DXGI_FORMAT_R8G8B8A8_UNORM, 8, 8);
  Own<cl_mem> memory = this->FromBuffer(buffer.Get());
  Own<cl_mem> image = this->FromTexture(texture.Get());
  typename TypeParam::Resource* resource = nullptr;
  EXPECT_EQ(clGetMemObjectInfo(memory, TypeParam::kResource, sizeof(resource), &resource, nullptr),
            CL_SUCCESS);
  EXPECT_EQ(resource, buffer.Get());
  EXPECT_EQ(clGetMemObjectInfo(image, TypeParam::kResource, sizeof(resource), &resource, nullptr),
            CL_SUCCESS);
  EXPECT_EQ(resource, texture.Get());
  EXPECT_EQ(clGetMemObjectInfo(memory, TypeParam::kResource, 1, &resource, nullptr),
            CL_INVALID_VALUE);
  // Objects that this extension did not make, in a context of this API and of none.
  Own<cl_context> no_api = conformance::WithPlatform::NewContext();
  for (const cl_context context : {this->context(), no_api.get()}) {
    const Own<cl_mem> plain = PlainBuffer(context);
    EXPECT_EQ(clGetMemObjectInfo(plain, TypeParam::kResource, sizeof(resource), &resource, nullptr),
              TypeParam::kInvalidResource);
    const Own<cl_mem> plain_image = PlainImage(context);
    UINT subresource = 0;
    EXPECT_EQ(clGetImageInfo(plain_image, TypeParam::kSubresource, sizeof(subresource),
                             &subresource, nullptr),
              TypeParam::kInvalidResource);
  }
  // A sub-buffer is not made from a resource itself.
  const cl_buffer_region all = {0, 64};
  cl_int status = CL_SUCCESS;
  Own<cl_mem> sub(
      clCreateSubBuffer(memory, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &all, &status));
  ASSERT_EQ(status, CL_SUCCESS);
  EXPECT_EQ(clGetMemObjectInfo(sub, TypeParam::kResource, sizeof(resource), &resource, nullptr),
            TypeParam::kInvalidResource);
  ExpectNoOtherApi(memory, image, TypeParam::kResource);
}

// The codes of acquire and release, in and out of turn; a call with one bad object changes nothing.
TYPED_TEST(D3dRefusals, AcquireAndRelease) {
  const auto buffer = this->SomeBuffer();
  const auto other_buffer = this->SomeBuffer();
  Own<cl_mem> memory = this->FromBuffer(buffer.Get());
  Own<cl_mem> other = this->FromBuffer(other_buffer.Get());
  const cl_mem both[] = {memory, other};
  EXPECT_EQ(this->Release(memory), TypeParam::kNotAcquired);
  ASSERT_EQ(this->Acquire(memory), CL_SUCCESS);
  EXPECT_EQ(this->Acquire(memory), TypeParam::kAlreadyAcquired);
  EXPECT_EQ(this->acquire_(this->queue(), 2, both, 0, nullptr, nullptr),
            TypeParam::kAlreadyAcquired);
  EXPECT_EQ(this->Release(other), TypeParam::kNotAcquired);
  EXPECT_EQ(this->release_(this->queue(), 2, both, 0, nullptr, nullptr), TypeParam::kNotAcquired);
  EXPECT_EQ(this->Release(memory), CL_SUCCESS);
  EXPECT_EQ(this->Release(memory), TypeParam::kNotAcquired);
  const cl_mem twice[] = {memory, memory};
  EXPECT_EQ(this->acquire_(this->queue(), 2, twice, 0, nullptr, nullptr),
            TypeParam::kAlreadyAcquired);
  EXPECT_EQ(this->Acquire(memory), CL_SUCCESS);
  EXPECT_EQ(this->Release(memory), CL_SUCCESS);
}

// CL_INVALID_VALUE, CL_INVALID_COMMAND_QUEUE, CL_INVALID_CONTEXT, CL_INVALID_MEM_OBJECT and
// CL_INVALID_EVENT_WAIT_LIST of both; nothing to do is done.
TYPED_TEST(D3dRefusals, SyncArguments) {
  const auto buffer = this->SomeBuffer();
  Own<cl_mem> memory = this->FromBuffer(buffer.Get());
  cl_int status = CL_SUCCESS;
  Own<cl_mem> plain(clCreateBuffer(this->context(), CL_MEM_READ_WRITE, 64, nullptr, &status));
  Own<cl_context> no_api = conformance::WithPlatform::NewContext();
  Own<cl_command_queue> no_api_queue(clCreateCommandQueue(no_api, this->device(), 0, &status));
  const cl_mem list[] = {memory};
  const cl_mem plain_list[] = {plain};
  const cl_mem null_list[] = {nullptr};
  const cl_event null_event[] = {nullptr};
  Own<cl_context> second = this->NewContext(this->Properties(this->app().device()), &status);
  Own<cl_command_queue> second_queue(clCreateCommandQueue(second, this->device(), 0, &status));
  Own<cl_event> second_event(clCreateUserEvent(second, &status));
  ASSERT_EQ(clSetUserEventStatus(second_event, CL_COMPLETE), CL_SUCCESS);
  for (const auto call : {this->acquire_, this->release_}) {
    // Another context's object and event (section 5.2's words for all enqueues).
    EXPECT_EQ(call(second_queue, 1, list, 0, nullptr, nullptr), CL_INVALID_CONTEXT);
    EXPECT_EQ(call(this->queue(), 1, list, 1, second_event.AsList(), nullptr), CL_INVALID_CONTEXT);
    EXPECT_EQ(call(this->queue(), 0, nullptr, 0, nullptr, nullptr), CL_SUCCESS);
    EXPECT_EQ(call(this->queue(), 0, list, 0, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(call(this->queue(), 1, nullptr, 0, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(call(nullptr, 1, list, 0, nullptr, nullptr), CL_INVALID_COMMAND_QUEUE);
    EXPECT_EQ(call(no_api_queue, 1, list, 0, nullptr, nullptr), CL_INVALID_CONTEXT);
    EXPECT_EQ(call(this->queue(), 1, plain_list, 0, nullptr, nullptr), CL_INVALID_MEM_OBJECT);
    EXPECT_EQ(call(this->queue(), 1, null_list, 0, nullptr, nullptr), CL_INVALID_MEM_OBJECT);
    EXPECT_EQ(call(this->queue(), 1, list, 1, nullptr, nullptr), CL_INVALID_EVENT_WAIT_LIST);
    EXPECT_EQ(call(this->queue(), 1, list, 0, null_event, nullptr), CL_INVALID_EVENT_WAIT_LIST);
    EXPECT_EQ(call(this->queue(), 1, list, 1, null_event, nullptr), CL_INVALID_EVENT_WAIT_LIST);
  }
}

// A memory object that is not acquired is refused by whatever would use it.
TYPED_TEST(D3dRefusals, UseWhileReleased) {
  constexpr cl_int kNotAcquired = TypeParam::kNotAcquired;
  const auto buffer = this->SomeBuffer();
  const auto texture = this->app().Texture2d(DXGI_FORMAT_R8G8B8A8_UNORM, 8, 8);
  Own<cl_mem> memory = this->FromBuffer(buffer.Get());
  Own<cl_mem> image = this->FromTexture(texture.Get());
  Own<cl_kernel> kernel =
      this->BuildKernel("kernel void add(global uint* v) { v[get_global_id(0)] += 1; }", "add");
  conformance::SetArg(kernel, 0, memory);
  uint8_t bytes[256] = {};
  const size_t zero[3] = {0, 0, 0};
  const size_t whole[3] = {8, 8, 1};
  cl_int status = CL_SUCCESS;
  const auto use_all = [&](cl_int expected) {
    EXPECT_EQ(conformance::Launch(this->queue(), kernel, 64), expected);
    EXPECT_EQ(
        clEnqueueReadBuffer(this->queue(), memory, CL_TRUE, 0, 256, bytes, 0, nullptr, nullptr),
        expected);
    EXPECT_EQ(clEnqueueReadImage(this->queue(), image, CL_TRUE, zero, whole, 0, 0, bytes, 0,
                                 nullptr, nullptr),
              expected);
    void* mapped = clEnqueueMapBuffer(this->queue(), memory, CL_TRUE, CL_MAP_READ, 0, 256, 0,
                                      nullptr, nullptr, &status);
    EXPECT_EQ(status, expected);
    if (mapped != nullptr)
      clEnqueueUnmapMemObject(this->queue(), memory, mapped, 0, nullptr, nullptr);
  };
  use_all(kNotAcquired);
  const cl_mem both[] = {memory, image};
  ASSERT_EQ(this->acquire_(this->queue(), 2, both, 0, nullptr, nullptr), CL_SUCCESS);
  use_all(CL_SUCCESS);
  ASSERT_EQ(this->release_(this->queue(), 2, both, 0, nullptr, nullptr), CL_SUCCESS);
  use_all(kNotAcquired);
}

// So is the unmap of what was mapped for writing: the next acquire takes it, and its release stores
// what was written. A mapping for reading can be given back.
TYPED_TEST(D3dRefusals, UnmapWhileReleased) {
  const auto buffer = this->SomeBuffer();
  Own<cl_mem> memory = this->FromBuffer(buffer.Get());
  const size_t bytes = this->app().Read(buffer.Get()).size();
  cl_int status = CL_SUCCESS;
  const auto map = [&](cl_map_flags flags) {
    return clEnqueueMapBuffer(this->queue(), memory, CL_TRUE, flags, 0, bytes, 0, nullptr, nullptr,
                              &status);
  };
  const auto unmap = [&](void* mapped) {
    return clEnqueueUnmapMemObject(this->queue(), memory, mapped, 0, nullptr, nullptr);
  };
  ASSERT_EQ(this->Acquire(memory), CL_SUCCESS);
  void* const for_writing = map(CL_MAP_WRITE);
  ASSERT_EQ(status, CL_SUCCESS);
  void* const for_reading = map(CL_MAP_READ);
  ASSERT_EQ(status, CL_SUCCESS);
  ASSERT_EQ(this->Release(memory), CL_SUCCESS);
  EXPECT_EQ(unmap(for_reading), CL_SUCCESS);
  EXPECT_EQ(unmap(for_writing), TypeParam::kNotAcquired);
  ASSERT_EQ(this->Acquire(memory), CL_SUCCESS);
  ASSERT_EQ(clFinish(this->queue()), CL_SUCCESS);
  const Bytes mine = Pattern(bytes, 7);
  std::memcpy(for_writing, mine.data(), bytes);
  EXPECT_EQ(unmap(for_writing), CL_SUCCESS);
  ASSERT_EQ(this->Release(memory), CL_SUCCESS);
  EXPECT_TRUE(this->app().Read(buffer.Get()) == mine);
}

}  // namespace
}  // namespace sluice::d3dtest
