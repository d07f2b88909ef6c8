// SPDX-License-Identifier: Apache-2.0
#include "platform_win/allocator/memory_maker.h"

#include <CL/cl.h>
#include <gtest/gtest.h>
#include <windows.h>

#include <cstring>
#include <string>
#include <vector>

#include "broker/os/lent_memory.h"

namespace sluice::os {
namespace {

OwnedHandle StandIn() { return OwnedHandle(::CreateEventW(nullptr, FALSE, FALSE, nullptr)); }

// Behind the seam to Direct3D: notes the shapes, and hands out events for handles.
class FakeSharing final : public allocator::D3d11Sharing {
 public:
  FakeSharing(std::vector<allocator::D3d11Shape>* shapes, const absl::Status* answer)
      : shapes_(shapes), answer_(answer) {}
  absl::StatusOr<allocator::D3d11Shared> Make(const allocator::D3d11Shape& shape) override {
    shapes_->push_back(shape);
    if (!answer_->ok()) return *answer_;
    allocator::D3d11Shared shared;
    shared.resource = StandIn();
    shared.fence = StandIn();
    shared.adapter_luid = {1, 2, 3, 4, 5, 6, 7, 8};
    return shared;
  }

 private:
  std::vector<allocator::D3d11Shape>* const shapes_;
  const absl::Status* const answer_;
};

class MemoryMakerTest : public testing::Test {
 protected:
  MemoryMakerTest()
      : maker_([this]() -> absl::StatusOr<std::unique_ptr<allocator::D3d11Sharing>> {
          ++opened_;
          if (!opens_.ok()) return opens_;
          return std::make_unique<FakeSharing>(&shapes_, &answer_);
        }) {}

  static wire::AllocateTexture Texture(uint32_t order, uint32_t type, uint32_t fourcc = 0) {
    auto request = wire::MakeMessage<wire::AllocateTexture>();
    request.size_bytes = 64 * 32 * 4;
    request.width = 64;
    request.height = 32;
    request.depth = 1;
    request.array_layers = 1;
    request.channel_order = order;
    request.channel_type = type;
    request.drm_fourcc = fourcc;
    return request;
  }

  int opened_ = 0;
  absl::Status opens_;
  absl::Status answer_;
  std::vector<allocator::D3d11Shape> shapes_;
  allocator::WindowsMemoryMaker maker_;
};

// A texture is asked for as the request says it, and comes as two handles and the adapter's LUID.
TEST_F(MemoryMakerTest, TexturesAreWhatWasAskedFor) {
  wire::AllocateTexture request = Texture(CL_RGBA, CL_UNORM_INT8);
  request.array_layers = 3;
  const auto made = maker_.MakeTexture(request);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->fds.size(), 2u);
  EXPECT_EQ(made->allocation_bytes, 64u * 32 * 4);
  EXPECT_EQ(made->device_uuid, (DeviceUuid{1, 2, 3, 4, 5, 6, 7, 8}));
  ASSERT_EQ(shapes_.size(), 1u);
  EXPECT_EQ(shapes_[0].dxgi_format, 28u);  // R8G8B8A8_UNORM
  EXPECT_EQ(shapes_[0].width, 64u);
  EXPECT_EQ(shapes_[0].height, 32u);
  EXPECT_EQ(shapes_[0].array_layers, 3u);
}

// A buffer has a size and nothing else.
TEST_F(MemoryMakerTest, BuffersHaveNoFormat) {
  auto request = wire::MakeMessage<wire::AllocateTexture>();
  request.size_bytes = 4096;
  ASSERT_TRUE(maker_.MakeTexture(request).ok());
  ASSERT_EQ(shapes_.size(), 1u);
  EXPECT_EQ(shapes_[0].size_bytes, 4096u);
  EXPECT_EQ(shapes_[0].dxgi_format, 0u);
  EXPECT_EQ(shapes_[0].width, 0u);
}

// OpenCL's name of a format or DRM's; what Direct3D has no texture for is refused before any driver
// is loaded, and so are depths.
TEST_F(MemoryMakerTest, FormatsAreDirect3ds) {
  EXPECT_EQ(allocator::DxgiFormatOf(CL_BGRA, CL_UNORM_INT8, 0), 87u);
  EXPECT_EQ(allocator::DxgiFormatOf(CL_R, CL_HALF_FLOAT, 0), 54u);
  EXPECT_EQ(allocator::DxgiFormatOf(CL_RGBA, CL_FLOAT, 0), 2u);
  EXPECT_EQ(allocator::DxgiFormatOf(0, 0, 0x3231564e /* NV12 */), 103u);
  EXPECT_EQ(allocator::DxgiFormatOf(0, 0, 0x30313050 /* P010 */), 104u);
  EXPECT_EQ(allocator::DxgiFormatOf(0, 0, 0x32315659 /* YV12 */), 0u);
  EXPECT_EQ(allocator::DxgiFormatOf(CL_RGB, CL_UNORM_SHORT_565, 0), 0u);
  EXPECT_TRUE(
      absl::IsInvalidArgument(maker_.MakeTexture(Texture(CL_RGB, CL_UNORM_SHORT_565)).status()));
  wire::AllocateTexture deep = Texture(CL_RGBA, CL_UNORM_INT8);
  deep.depth = 2;
  EXPECT_TRUE(absl::IsInvalidArgument(maker_.MakeTexture(deep).status()));
  EXPECT_EQ(opened_, 0);
}

// Where Direct3D cannot share, that is said, with what can be had; nothing is tried twice.
TEST_F(MemoryMakerTest, WhatCannotShareSaysSo) {
  opens_ = absl::UnimplementedError("no fences");
  for (int i = 0; i < 2; ++i) {
    const auto made = maker_.MakeTexture(Texture(CL_RGBA, CL_UNORM_INT8));
    EXPECT_TRUE(absl::IsUnimplemented(made.status())) << made.status();
    EXPECT_NE(made.status().message().find("no fences"), std::string::npos);
    EXPECT_NE(made.status().message().find("SLUICE_BACKING_MEMFD"), std::string::npos);
  }
  EXPECT_EQ(opened_, 1);
  EXPECT_TRUE(maker_.Make(wire::ResourceBacking::kMemfd, 4096).ok());
}

// The failure of one resource says nothing of the next.
TEST_F(MemoryMakerTest, RefusalsAreTheResources) {
  answer_ = absl::InvalidArgumentError("no such texture");
  EXPECT_TRUE(
      absl::IsInvalidArgument(maker_.MakeTexture(Texture(CL_RGBA, CL_UNORM_INT8)).status()));
  answer_ = absl::OkStatus();
  EXPECT_TRUE(maker_.MakeTexture(Texture(CL_RGBA, CL_UNORM_INT8)).ok());
  EXPECT_EQ(opened_, 1);
}

// A trusted reader gets the very handle, and so does a writer; another reader none, since there is
// none for reading only.
TEST_F(MemoryMakerTest, HandlesAreLentToTrustedReaders) {
  const auto made = maker_.MakeTexture(Texture(CL_RGBA, CL_UNORM_INT8));
  ASSERT_TRUE(made.ok());
  const int fd = made->fds[0].get();
  EXPECT_TRUE(LendForWriting(fd, LentKind::kOpaque).ok());
  EXPECT_TRUE(LendForReading(fd, LentKind::kOpaque, 0, /*trusted=*/true).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(
      LendForReading(fd, LentKind::kOpaque, 0, /*trusted=*/false).status()));
  const auto section = CreateLentMemory("test", 4096);
  EXPECT_FALSE(LendForWriting(section->get(), LentKind::kOpaque).ok());
}

// Direct3D reads as much of the first contents as a format and extents take, whatever pitch and
// size the client says; every format that a texture may have is known.
TEST(D3d11SharingTest, LayersAreOfTheFormatAndTheExtents) {
  const auto layer = [](uint32_t format, uint32_t width, uint32_t height) {
    allocator::D3d11Shape shape;
    shape.size_bytes = 1;
    shape.dxgi_format = format;
    shape.width = width;
    shape.height = height;
    const auto of = allocator::LayerOf(shape);
    return of.ok() ? std::pair<uint64_t, uint64_t>(of->row_pitch, of->bytes)
                   : std::pair<uint64_t, uint64_t>(0, 0);
  };
  using Pair = std::pair<uint64_t, uint64_t>;
  EXPECT_EQ(layer(28, 64, 32), Pair(64 * 4, 64 * 4 * 32));   // R8G8B8A8_UNORM
  EXPECT_EQ(layer(87, 64, 32), Pair(64 * 4, 64 * 4 * 32));   // B8G8R8A8_UNORM
  EXPECT_EQ(layer(2, 3, 5), Pair(3 * 16, 3 * 16 * 5));       // R32G32B32A32_FLOAT
  EXPECT_EQ(layer(35, 3, 5), Pair(3 * 4, 3 * 4 * 5));        // R16G16_UNORM
  EXPECT_EQ(layer(61, 3, 5), Pair(3, 3 * 5));                // R8_UNORM
  EXPECT_EQ(layer(103, 64, 64), Pair(64, 64 * 96));          // NV12
  EXPECT_EQ(layer(104, 64, 64), Pair(64 * 2, 64 * 2 * 96));  // P010
  EXPECT_EQ(layer(103, 63, 63), Pair(64, 64 * (63 + 32)));   // NV12, rounded up
  EXPECT_EQ(layer(2, 16384, 16384), Pair(262144, 262144u * uint64_t{16384}));
  EXPECT_EQ(layer(2, 16385, 1), Pair(0, 0));
  EXPECT_EQ(layer(1, 64, 64), Pair(0, 0));  // R32G32B32A32_TYPELESS, which nothing asks for.
#define DXGI_ROW(name, value, order, type)                                       \
  EXPECT_EQ(allocator::DxgiFormatOf(CL_##order, CL_##type, 0), uint32_t{value}); \
  EXPECT_GT(layer(value, 1, 1).first, 0u) << #name;
#include "proto/dxgi_formats.inc"
  for (const uint32_t fourcc : {0x34325258u /* XR24 */, 0x30334241u /* AB30 */}) {
    EXPECT_EQ(layer(allocator::DxgiFormatOf(0, 0, fourcc), 1, 1), Pair(4, 4)) << fourcc;
  }
}

// The real thing behind the seam: where it cannot share, it says what it lacks.
TEST(D3d11SharingTest, RealOneSharesOrSaysWhy) {
  const auto sharing = allocator::D3d11Sharing::Create();
  if (!sharing.ok()) {
    EXPECT_TRUE(absl::IsUnimplemented(sharing.status()) || absl::IsNotFound(sharing.status()))
        << sharing.status();
    std::printf("Direct3D shares nothing here: %s\n", sharing.status().ToString().c_str());
    return;
  }
  allocator::D3d11Shape shape;
  shape.size_bytes = 64 * 32 * 4;
  shape.dxgi_format = 28;
  shape.width = 64;
  shape.height = 32;
  const auto shared = (*sharing)->Make(shape);
  ASSERT_TRUE(shared.ok()) << shared.status();
  EXPECT_TRUE(shared->resource.valid() && shared->fence.valid());
}

}  // namespace
}  // namespace sluice::os
