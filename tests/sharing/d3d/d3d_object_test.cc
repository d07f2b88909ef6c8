// SPDX-License-Identifier: Apache-2.0
// Contents through cl_khr_d3d10_sharing, cl_khr_d3d11_sharing and cl_nv_d3d11_sharing: what
// Direct3D wrote, OpenCL reads; what OpenCL wrote, Direct3D reads; bit for bit.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "tests/sharing/d3d/d3d_fixture.h"

namespace sluice::d3dtest {
namespace {

constexpr cl_image_format kRgba8 = {CL_RGBA, CL_UNORM_INT8};

template <typename E>
class D3dObjects : public WithImages<WithD3d<E>> {
 protected:
  // `make` has a texture of that type and size made of a format.
  template <typename Make>
  void EachFormat(cl_mem_object_type type, const Size& size, Make make) {
    int shared = 0;
    for (const DxgiFormat& format : AllDxgiFormats()) {
      SCOPED_TRACE(format.name);
      const size_t element = ElementBytes(format.cl);
      const auto texture = make(format.native);
      ASSERT_NE(texture, nullptr);
      if (!this->DeviceHas(format.cl, type, CL_MEM_READ_WRITE)) {
        this->FromTexture(texture.Get(), 0, CL_INVALID_IMAGE_FORMAT_DESCRIPTOR);
        continue;
      }
      const Bytes before = Pattern(format.cl, size.elements(), 1);
      const Bytes after = Pattern(format.cl, size.elements(), 2);
      this->app().Write(texture.Get(), 0, before, size.width, size.height, element);
      Own<cl_mem> image = this->FromTexture(texture.Get());
      ASSERT_NE(image.get(), nullptr);
      const cl_image_format seen = FormatOf(image);
      EXPECT_EQ(seen.image_channel_order, format.cl.image_channel_order);
      EXPECT_EQ(seen.image_channel_data_type, format.cl.image_channel_data_type);
      this->ThroughImage(image, size, before, after);
      EXPECT_TRUE(this->app().Read(texture.Get(), 0, size, element) == after);
      ++shared;
    }
    std::printf("%d of %zu formats shared\n", shared, AllDxgiFormats().size());
    EXPECT_GT(shared, 0);
  }
};
TYPED_TEST_SUITE(D3dObjects, Extensions);

// The platform and the device have the extension.
TYPED_TEST(D3dObjects, ExtensionIsListed) {
  const auto has = [](const std::string& list) {
    return (" " + list + " ").find(" " + std::string(TypeParam::kExtension) + " ") !=
           std::string::npos;
  };
  EXPECT_TRUE(has(conformance::PlatformString(this->platform(), CL_PLATFORM_EXTENSIONS)));
  EXPECT_TRUE(has(conformance::DeviceString(this->device(), CL_DEVICE_EXTENSIONS)));
}

// A kernel adds one to every element of a vertex buffer.
TYPED_TEST(D3dObjects, BufferThroughKernel) {
  std::vector<cl_uint> values = conformance::Counting<cl_uint>(50000, 7);
  const size_t bytes = values.size() * sizeof(cl_uint);
  const auto buffer = this->app().Buffer(bytes, values.data());
  ASSERT_NE(buffer, nullptr);
  Own<cl_mem> memory = this->FromBuffer(buffer.Get());
  ASSERT_NE(memory.get(), nullptr);
  size_t seen = 0;
  EXPECT_EQ(clGetMemObjectInfo(memory, CL_MEM_SIZE, sizeof(seen), &seen, nullptr), CL_SUCCESS);
  EXPECT_EQ(seen, bytes);
  Own<cl_kernel> kernel =
      this->BuildKernel("kernel void add(global uint* v) { v[get_global_id(0)] += 1; }", "add");
  conformance::SetArg(kernel, 0, memory);
  ASSERT_EQ(this->Acquire(memory), CL_SUCCESS);
  ASSERT_EQ(conformance::Launch(this->queue(), kernel, values.size()), CL_SUCCESS);
  ASSERT_EQ(this->Release(memory), CL_SUCCESS);
  for (cl_uint& value : values) ++value;
  const Bytes after = this->app().Read(buffer.Get());
  EXPECT_EQ(std::memcmp(after.data(), values.data(), bytes), 0);
}

// A buffer larger than a frame of the network keeps its bytes both ways.
TYPED_TEST(D3dObjects, LargeBuffer) {
  constexpr size_t kBytes = 12u << 20;
  Bytes bytes = Pattern(kBytes, 3);
  const auto buffer = this->app().Buffer(kBytes, bytes.data());
  ASSERT_NE(buffer, nullptr);
  Own<cl_mem> memory = this->FromBuffer(buffer.Get());
  Own<cl_kernel> kernel =
      this->BuildKernel("kernel void flip(global uint* v) { v[get_global_id(0)] ^= ~0u; }", "flip");
  conformance::SetArg(kernel, 0, memory);
  ASSERT_EQ(this->Acquire(memory), CL_SUCCESS);
  ASSERT_EQ(conformance::Launch(this->queue(), kernel, kBytes / 4), CL_SUCCESS);
  ASSERT_EQ(this->Release(memory), CL_SUCCESS);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(~byte);
  EXPECT_TRUE(this->app().Read(buffer.Get()) == bytes);
}

// Every row of the format table, of odd size: it is as the table says, and its bits survive both
// ways. One that the OpenCL device has not is refused with the code that says so.
TYPED_TEST(D3dObjects, EveryFormat) {
  this->EachFormat(CL_MEM_OBJECT_IMAGE2D, {37, 19},
                   [this](DXGI_FORMAT format) { return this->app().Texture2d(format, 37, 19); });
}
TYPED_TEST(D3dObjects, EveryFormatOf3d) {
  this->EachFormat(CL_MEM_OBJECT_IMAGE3D, {9, 5, 3},
                   [this](DXGI_FORMAT format) { return this->app().Texture3d(format, 9, 5, 3); });
}

// In each of the device's formats, from one texture to another, a kernel has what Direct3D wrote,
// and Direct3D what the kernel made of it.
TYPED_TEST(D3dObjects, EveryFormatThroughKernel) {
  const Size size = {37, 19};
  for (const DxgiFormat& format : AllDxgiFormats()) {
    SCOPED_TRACE(format.name);
    if (!this->DeviceHas(format.cl, CL_MEM_OBJECT_IMAGE2D, CL_MEM_READ_WRITE)) continue;
    const size_t element = ElementBytes(format.cl);
    const auto from = this->app().Texture2d(format.native, 37, 19);
    const auto to = this->app().Texture2d(format.native, 37, 19);
    ASSERT_NE(from, nullptr);
    ASSERT_NE(to, nullptr);
    const Bytes bytes = Pattern(format.cl, size.elements(), 3);
    this->app().Write(from.Get(), 0, bytes, size.width, size.height, element);
    Own<cl_mem> in = this->FromTexture(from.Get());
    Own<cl_mem> out = this->FromTexture(to.Get());
    this->ThroughKernel(in, out);
    EXPECT_TRUE(this->app().Read(to.Get(), 0, size, element) == Mirrored(format.cl, size, bytes));
  }
}

// Formats beside the table are refused.
TYPED_TEST(D3dObjects, OtherFormatsAreRefused) {
  for (const DXGI_FORMAT format :
       {DXGI_FORMAT_R8G8B8A8_UNORM_SRGB, DXGI_FORMAT_R8G8B8A8_TYPELESS, DXGI_FORMAT_B8G8R8X8_UNORM,
        DXGI_FORMAT_R10G10B10A2_UNORM, DXGI_FORMAT_R11G11B10_FLOAT, DXGI_FORMAT_BC1_UNORM}) {
    SCOPED_TRACE(format);
    const auto texture = this->app().Texture2d(format, 16, 16);
    if (texture != nullptr)  // Else Direct3D has none such here.
      this->FromTexture(texture.Get(), 0, CL_INVALID_IMAGE_FORMAT_DESCRIPTOR);
    const auto volume = this->app().Texture3d(format, 16, 16, 4);
    if (volume != nullptr) this->FromTexture(volume.Get(), 0, CL_INVALID_IMAGE_FORMAT_DESCRIPTOR);
  }
}

// Each level of each layer is an image of its own, and what is written to one stays there.
TYPED_TEST(D3dObjects, EverySubresourceOf2d) {
  constexpr UINT kLevels = 3;
  constexpr UINT kLayers = 2;
  const auto texture =
      this->app().Texture2d(DXGI_FORMAT_R8G8B8A8_UNORM, 20, 13, {kLevels, kLayers});
  ASSERT_NE(texture, nullptr);
  std::vector<Own<cl_mem>> images;
  for (UINT at = 0; at < kLevels * kLayers; ++at) {
    const Size size = {std::max(20u >> at % kLevels, 1u), std::max(13u >> at % kLevels, 1u)};
    this->app().Write(texture.Get(), at, Pattern(kRgba8, size.elements(), at), size.width,
                      size.height, 4);
    images.push_back(this->FromTexture(texture.Get(), at));
    ASSERT_NE(images.back().get(), nullptr) << at;
    EXPECT_EQ(SizeOf(images.back()).width, size.width);
    EXPECT_EQ(SizeOf(images.back()).height, size.height);
    UINT subresource = 99;
    EXPECT_EQ(clGetImageInfo(images.back(), TypeParam::kSubresource, sizeof(subresource),
                             &subresource, nullptr),
              CL_SUCCESS);
    EXPECT_EQ(subresource, at);
  }
  for (UINT at = 0; at < images.size(); ++at) {
    SCOPED_TRACE(at);
    const size_t elements = SizeOf(images[at]).elements();
    this->ThroughImage(images[at], SizeOf(images[at]), Pattern(kRgba8, elements, at),
                       Pattern(kRgba8, elements, 100 + at));
  }
  for (UINT at = 0; at < images.size(); ++at) {
    const Size size = SizeOf(images[at]);
    EXPECT_TRUE(this->app().Read(texture.Get(), at, size, 4) ==
                Pattern(kRgba8, size.elements(), 100 + at))
        << at;
  }
}

// The same for the levels of a volume.
TYPED_TEST(D3dObjects, EverySubresourceOf3d) {
  const auto texture = this->app().Texture3d(DXGI_FORMAT_R8G8B8A8_UNORM, 12, 7, 5, 3);
  ASSERT_NE(texture, nullptr);
  for (UINT level = 0; level < 3; ++level) {
    SCOPED_TRACE(level);
    const Size size = {12u >> level, std::max(7u >> level, 1u), std::max(5u >> level, 1u)};
    const Bytes before = Pattern(kRgba8, size.elements(), level);
    const Bytes after = Pattern(kRgba8, size.elements(), 50 + level);
    this->app().Write(texture.Get(), level, before, size.width, size.height, 4);
    Own<cl_mem> image = this->FromTexture(texture.Get(), level);
    ASSERT_NE(image.get(), nullptr);
    EXPECT_EQ(SizeOf(image).depth, size.depth);
    UINT subresource = 99;
    EXPECT_EQ(
        clGetImageInfo(image, TypeParam::kSubresource, sizeof(subresource), &subresource, nullptr),
        CL_SUCCESS);
    EXPECT_EQ(subresource, level);
    this->ThroughImage(image, size, before, after);
    EXPECT_TRUE(this->app().Read(texture.Get(), level, size, 4) == after);
  }
}

// A kernel gets what Direct3D drew a moment ago, without waiting; and what the kernel made of it is
// what Direct3D has right after the release.
TYPED_TEST(D3dObjects, DrawnThenTransformed) {
  const auto texture = this->app().Texture2d(
      DXGI_FORMAT_R8G8B8A8_UNORM, 64, 48,
      {1, 1, TypeParam::kDefault, TypeParam::kRenderTarget | TypeParam::kShaderResource});
  ASSERT_NE(texture, nullptr);
  Com<typename TypeParam::RenderTarget> view;
  ASSERT_EQ(this->app().device()->CreateRenderTargetView(texture.Get(), nullptr, &view), S_OK);
  Own<cl_mem> image = this->FromTexture(texture.Get());
  Own<cl_kernel> kernel = this->BuildKernel(
      "kernel void invert(read_only image2d_t in, write_only image2d_t out) {"
      "  const int2 at = (int2)(get_global_id(0), get_global_id(1));"
      "  write_imagef(out, at, 1.0f - read_imagef(in, at)); }",
      "invert");
  cl_int status = CL_SUCCESS;
  cl_image_desc desc = {};
  desc.image_type = CL_MEM_OBJECT_IMAGE2D;
  desc.image_width = 64;
  desc.image_height = 48;
  Own<cl_mem> scratch(
      clCreateImage(this->context(), CL_MEM_READ_WRITE, &kRgba8, &desc, nullptr, &status));
  ASSERT_EQ(status, CL_SUCCESS);
  conformance::SetArg(kernel, 0, image);
  conformance::SetArg(kernel, 1, scratch);
  for (int round = 0; round < 3; ++round) {
    const float colour[4] = {1.0f, 0.0f, round == 1 ? 1.0f : 0.0f, 1.0f};
    this->app().commands()->ClearRenderTargetView(view.Get(), colour);
    ASSERT_EQ(this->Acquire(image), CL_SUCCESS);
    const size_t global[2] = {64, 48};
    ASSERT_EQ(clEnqueueNDRangeKernel(this->queue(), kernel, 2, nullptr, global, nullptr, 0, nullptr,
                                     nullptr),
              CL_SUCCESS);
    const size_t zero[3] = {0, 0, 0};
    const size_t whole[3] = {64, 48, 1};
    ASSERT_EQ(
        clEnqueueCopyImage(this->queue(), scratch, image, zero, zero, whole, 0, nullptr, nullptr),
        CL_SUCCESS);
    ASSERT_EQ(this->Release(image), CL_SUCCESS);
    const uint8_t blue = round == 1 ? 0 : 255;
    Bytes expected;
    for (int i = 0; i < 64 * 48; ++i) {
      const uint8_t pixel[4] = {0, 255, blue, 0};
      expected.insert(expected.end(), pixel, pixel + 4);
    }
    EXPECT_TRUE(this->app().Read(texture.Get(), 0, {64, 48}, 4) == expected) << round;
  }
}

// Resources that the processor writes, or reads, are shared as well.
TYPED_TEST(D3dObjects, DynamicAndStaging) {
  const Bytes before = Pattern(4096, 5);
  const Bytes after = Pattern(4096, 6);
  const auto dynamic =
      this->app().Buffer(4096, before.data(), TypeParam::kDynamic, TypeParam::kCpuWrite);
  const auto staging = this->app().Buffer(4096, before.data(), TypeParam::kStaging,
                                          TypeParam::kCpuRead | TypeParam::kCpuWrite);
  for (const auto& buffer : {dynamic, staging}) {
    ASSERT_NE(buffer, nullptr);
    Own<cl_mem> memory = this->FromBuffer(buffer.Get());
    ASSERT_EQ(this->Acquire(memory), CL_SUCCESS);
    EXPECT_TRUE(this->ReadBuffer(memory, 4096) == before);
    this->WriteBuffer(memory, after);
    ASSERT_EQ(this->Release(memory), CL_SUCCESS);
    EXPECT_TRUE(this->app().Read(buffer.Get()) == after);
  }
}

// Bytes that no command wrote are not stored: a change that Direct3D made meanwhile, against the
// rules, would be lost otherwise.
TYPED_TEST(D3dObjects, OnlyReadIsNotStored) {
  const Bytes before = Pattern(1024, 1);
  const Bytes meanwhile = Pattern(1024, 2);
  const auto buffer = this->app().Buffer(1024, before.data());
  Own<cl_mem> memory = this->FromBuffer(buffer.Get());
  ASSERT_EQ(this->Acquire(memory), CL_SUCCESS);
  EXPECT_TRUE(this->ReadBuffer(memory, 1024) == before);
  this->app().Write(buffer.Get(), 0, meanwhile, 1024, 1, 1);
  ASSERT_EQ(this->Release(memory), CL_SUCCESS);
  EXPECT_TRUE(this->app().Read(buffer.Get()) == meanwhile);
}

// A predicate of the application's, by which Direct3D would leave copies out, decides over nothing
// of ours, and is there again afterwards.
TYPED_TEST(D3dObjects, PredicateIsPutAside) {
  const Bytes before = Pattern(1024, 1);
  const Bytes after = Pattern(1024, 2);
  const auto buffer = this->app().Buffer(1024, before.data());
  Own<cl_mem> memory = this->FromBuffer(buffer.Get());
  typename TypeParam::QueryDesc desc = {};
  desc.Query = TypeParam::kOcclusion;
  Com<typename TypeParam::Predicate> predicate;
  ASSERT_EQ(this->app().device()->CreatePredicate(&desc, &predicate), S_OK);
  TypeParam::Issue(this->app().commands(), predicate.Get());
  this->app().commands()->SetPredication(predicate.Get(), FALSE);
  ASSERT_EQ(this->Acquire(memory), CL_SUCCESS);
  EXPECT_TRUE(this->ReadBuffer(memory, 1024) == before);
  this->WriteBuffer(memory, after);
  ASSERT_EQ(this->Release(memory), CL_SUCCESS);
  Com<typename TypeParam::Predicate> seen;
  BOOL value = TRUE;
  this->app().commands()->GetPredication(&seen, &value);
  EXPECT_EQ(seen.Get(), predicate.Get());
  EXPECT_EQ(value, FALSE);
  this->app().commands()->SetPredication(nullptr, FALSE);
  EXPECT_TRUE(this->app().Read(buffer.Get()) == after);
}

// Textures that were made to be shared, in every way that this Direct3D makes them, keep their bits
// as others do: by handle where that can be, by staging where it cannot.
TYPED_TEST(D3dObjects, MadeToBeShared) {
  constexpr UINT kShared = 0x2;  // D3D10 and D3D11_RESOURCE_MISC_SHARED, and the next two.
  constexpr UINT kNtHandle = 0x800;
  constexpr UINT kKeyedMutex = TypeParam::kSharedKeyedMutex;
  int made = 0;
  for (const UINT flags : {kShared, kShared | kNtHandle, kKeyedMutex, kKeyedMutex | kNtHandle}) {
    typename TypeParam::Texture2dDesc desc = {};
    desc.Width = 24;
    desc.Height = 16;
    desc.MipLevels = 1;
    desc.ArraySize = 1;
    desc.Format = DXGI_FORMAT_R8G8B8A8_UNORM;
    desc.SampleDesc.Count = 1;
    desc.BindFlags = TypeParam::kShaderResource;
    desc.MiscFlags = flags;
    Com<typename TypeParam::Texture2d> texture;
    if (FAILED(this->app().device()->CreateTexture2D(&desc, nullptr, &texture))) continue;
    // A texture with a keyed mutex is used by who holds it, where there are such mutexes.
    Com<IDXGIKeyedMutex> mutex;
    if (SUCCEEDED(texture.As(&mutex))) {
      ASSERT_EQ(mutex->AcquireSync(0, 1000), S_OK);
    }
    ++made;
    const Bytes before = Pattern(kRgba8, 24 * 16, flags);
    const Bytes after = Pattern(kRgba8, 24 * 16, flags + 1);
    this->app().Write(texture.Get(), 0, before, 24, 16, 4);
    Own<cl_mem> image = this->FromTexture(texture.Get());
    ASSERT_EQ(this->Acquire(image), CL_SUCCESS);
    EXPECT_TRUE(this->ReadImage(image, {24, 16}) == before) << flags;
    this->WriteImage(image, {24, 16}, after);
    ASSERT_EQ(this->Release(image), CL_SUCCESS);
    EXPECT_TRUE(this->app().Read(texture.Get(), 0, {24, 16}, 4) == after) << flags;
  }
  EXPECT_GT(made, 0);
}

// Several objects go in one call, whatever they are.
TYPED_TEST(D3dObjects, SeveralInOneCall) {
  const Bytes bytes = Pattern(2048, 9);
  const auto buffer = this->app().Buffer(2048, bytes.data());
  const auto texture = this->app().Texture2d(DXGI_FORMAT_R8G8B8A8_UNORM, 8, 8);
  const Bytes pixels = Pattern(kRgba8, 64, 4);
  this->app().Write(texture.Get(), 0, pixels, 8, 8, 4);
  Own<cl_mem> memory = this->FromBuffer(buffer.Get());
  Own<cl_mem> image = this->FromTexture(texture.Get());
  const cl_mem both[] = {memory, image};
  ASSERT_EQ(this->acquire_(this->queue(), 2, both, 0, nullptr, nullptr), CL_SUCCESS);
  EXPECT_TRUE(this->ReadBuffer(memory, 2048) == bytes);
  EXPECT_TRUE(this->ReadImage(image, {8, 8}) == pixels);
  this->WriteBuffer(memory, Pattern(2048, 10));
  this->WriteImage(image, {8, 8}, Pattern(kRgba8, 64, 11));
  ASSERT_EQ(this->release_(this->queue(), 2, both, 0, nullptr, nullptr), CL_SUCCESS);
  EXPECT_TRUE(this->app().Read(buffer.Get()) == Pattern(2048, 10));
  EXPECT_TRUE(this->app().Read(texture.Get(), 0, {8, 8}, 4) == Pattern(kRgba8, 64, 11));
}

// Two devices of one application, each with a context of its own, share at the same time.
TYPED_TEST(D3dObjects, TwoDevices) {
  D3dApp<TypeParam> other;
  ASSERT_TRUE(other.ok());
  cl_int status = CL_SUCCESS;
  Own<cl_context> second = this->NewContext(this->Properties(other.device()), &status);
  ASSERT_EQ(status, CL_SUCCESS);
  Own<cl_command_queue> second_queue(clCreateCommandQueue(second, this->device(), 0, &status));
  ASSERT_EQ(status, CL_SUCCESS);
  const Bytes here = Pattern(512, 1);
  const Bytes there = Pattern(512, 2);
  const auto buffer_here = this->app().Buffer(512, here.data());
  const auto buffer_there = other.Buffer(512, there.data());
  Own<cl_mem> memory_here = this->FromBuffer(buffer_here.Get());
  Own<cl_mem> memory_there(
      this->create_buffer_(second, CL_MEM_READ_WRITE, buffer_there.Get(), &status));
  ASSERT_EQ(status, CL_SUCCESS);
  const cl_mem there_list = memory_there;
  ASSERT_EQ(this->Acquire(memory_here), CL_SUCCESS);
  ASSERT_EQ(this->acquire_(second_queue, 1, &there_list, 0, nullptr, nullptr), CL_SUCCESS);
  Bytes seen(512);
  ASSERT_EQ(clEnqueueReadBuffer(second_queue, memory_there, CL_TRUE, 0, 512, seen.data(), 0,
                                nullptr, nullptr),
            CL_SUCCESS);
  EXPECT_TRUE(seen == there);
  EXPECT_TRUE(this->ReadBuffer(memory_here, 512) == here);
  ASSERT_EQ(this->release_(second_queue, 1, &there_list, 0, nullptr, nullptr), CL_SUCCESS);
  ASSERT_EQ(this->Release(memory_here), CL_SUCCESS);
  // A resource of the other device is none of this context's.
  this->FromBuffer(buffer_there.Get(), TypeParam::kInvalidResource);
}

// A device of one thread is used on the calling thread alone; what would have to wait for the
// application there is refused, but nothing that only has its user events beside it.
TYPED_TEST(D3dObjects, SingleThreadedDevice) {
  D3dApp<TypeParam> single(TypeParam::kSingleThreaded);
  ASSERT_TRUE(single.ok());
  this->LetContextGo();
  this->MakeContext(this->Properties(single.device()));
  const Bytes before = Pattern(1000, 1);
  const auto buffer = single.Buffer(1000, before.data());
  Own<cl_mem> memory = this->FromBuffer(buffer.Get());
  ASSERT_EQ(this->Acquire(memory), CL_SUCCESS);
  EXPECT_TRUE(this->ReadBuffer(memory, 1000) == before);
  this->WriteBuffer(memory, Pattern(1000, 2));
  ASSERT_EQ(this->Release(memory), CL_SUCCESS);
  EXPECT_TRUE(single.Read(buffer.Get()) == Pattern(1000, 2));
  cl_int status = CL_SUCCESS;
  Own<cl_event> gate(clCreateUserEvent(this->context(), &status));
  ASSERT_EQ(status, CL_SUCCESS);
  ASSERT_EQ(this->Acquire(memory), CL_SUCCESS);
  this->WriteBuffer(memory, Pattern(1000, 3));
  ASSERT_EQ(this->Release(memory), CL_SUCCESS);
  EXPECT_TRUE(single.Read(buffer.Get()) == Pattern(1000, 3));
  if ((single.device()->GetCreationFlags() & TypeParam::kSingleThreaded) == 0)
    GTEST_SKIP() << "the device does not say that it is of one thread (Wine 8)";
  const cl_mem list[] = {memory};
  EXPECT_EQ(this->acquire_(this->queue(), 1, list, 1, gate.AsList(), nullptr),
            CL_INVALID_OPERATION);
  ASSERT_EQ(this->Acquire(memory), CL_SUCCESS);
  EXPECT_EQ(this->release_(this->queue(), 1, list, 1, gate.AsList(), nullptr),
            CL_INVALID_OPERATION);
  EXPECT_EQ(this->Release(memory), CL_SUCCESS);
}

}  // namespace
}  // namespace sluice::d3dtest
