// SPDX-License-Identifier: Apache-2.0
//
// The allocator's Direct3D over a device that the tests make up, which shares, and can be removed.
#include "platform_win/allocator/d3d11_sharing.h"

#include <CL/cl.h>
#include <gtest/gtest.h>

#include "platform_win/allocator/memory_maker.h"
#include "tests/unit/client_icd/d3d/fake_direct3d.h"

namespace sluice::os {
namespace {

class AllocatorDeviceTest : public testing::Test {
 protected:
  AllocatorDeviceTest()
      : maker_([this] {
          ++opened_;
          return allocator::D3d11Sharing::CreateOn(direct3d_.device());
        }) {
    direct3d_.has_fences = true;
  }

  absl::StatusOr<allocator::MadeMemory> MakeTexture() {
    auto request = wire::MakeMessage<wire::AllocateTexture>();
    request.size_bytes = 64 * 32 * 4;
    request.width = 64;
    request.height = 32;
    request.depth = 1;
    request.array_layers = 1;
    request.channel_order = CL_RGBA;
    request.channel_type = CL_UNORM_INT8;
    return maker_.MakeTexture(request);
  }

  absl::StatusOr<allocator::MadeMemory> MakeBuffer(uint64_t size_bytes) {
    auto request = wire::MakeMessage<wire::AllocateTexture>();
    request.size_bytes = size_bytes;
    return maker_.MakeTexture(request);
  }

  int opened_ = 0;
  client::sharing::FakeDirect3d direct3d_;
  allocator::WindowsMemoryMaker maker_;
};

// A texture comes as two handles, of itself and of its fence, once it has been cleared on one
// device for all; what is given back to Direct3D is all that was taken.
TEST_F(AllocatorDeviceTest, TexturesAreClearedAndShared) {
  for (int i = 0; i < 3; ++i) {
    const auto made = MakeTexture();
    ASSERT_TRUE(made.ok()) << made.status();
    EXPECT_EQ(made->fds.size(), 2u);
    EXPECT_EQ(direct3d_.TakeLog(), "signal1 flush sleep1 ");
  }
  EXPECT_EQ(opened_, 1);
  ASSERT_EQ(direct3d_.textures.size(), 3u);
  for (const auto& texture : direct3d_.textures) {
    EXPECT_EQ(texture.desc.MiscFlags,
              static_cast<UINT>(D3D11_RESOURCE_MISC_SHARED | D3D11_RESOURCE_MISC_SHARED_NTHANDLE));
    EXPECT_EQ(texture.references, 0);
  }
  EXPECT_EQ(direct3d_.shared_access,
            static_cast<DWORD>(DXGI_SHARED_RESOURCE_READ | DXGI_SHARED_RESOURCE_WRITE));
}

// A buffer comes as a texture does; views of any format may be made of it.
TEST_F(AllocatorDeviceTest, BuffersAreClearedAndShared) {
  const auto made = MakeBuffer(4096);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->fds.size(), 2u);
  EXPECT_EQ(direct3d_.TakeLog(), "signal1 flush sleep1 ");
  ASSERT_EQ(direct3d_.buffers.size(), 1u);
  const auto& buffer = direct3d_.buffers.front();
  EXPECT_EQ(buffer.desc.ByteWidth, 4096u);
  EXPECT_EQ(buffer.desc.MiscFlags,
            UINT{D3D11_RESOURCE_MISC_SHARED | D3D11_RESOURCE_MISC_SHARED_NTHANDLE |
                 D3D11_RESOURCE_MISC_BUFFER_ALLOW_RAW_VIEWS});
  EXPECT_EQ(buffer.zeros, 4096u) << "what others left there is never seen";
  EXPECT_EQ(buffer.references, 0);
}

// A buffer beyond what Direct3D counts, or that it refuses, is the request's own fault; the device
// stays.
TEST_F(AllocatorDeviceTest, BuffersThatAreRefused) {
  for (const int bits : {32, 62}) {
    const absl::Status refused = MakeBuffer(uint64_t{1} << bits).status();
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  }
  direct3d_.create_buffer = E_INVALIDARG;
  EXPECT_TRUE(absl::IsInvalidArgument(MakeBuffer(3).status()));
  direct3d_.create_buffer = E_OUTOFMEMORY;
  EXPECT_TRUE(absl::IsResourceExhausted(MakeBuffer(4096).status()));
  direct3d_.create_buffer = S_OK;
  EXPECT_TRUE(MakeBuffer(4096).ok());
  EXPECT_EQ(opened_, 1);
}

// A device that was removed is given back, whatever it answered last, and another made for the next
// request; who asked meanwhile is told that, and not that this machine cannot share.
TEST_F(AllocatorDeviceTest, RemovedDeviceIsReplaced) {
  ASSERT_TRUE(MakeTexture().ok());
  const int references = direct3d_.device_references;
  for (const HRESULT answer : {DXGI_ERROR_DEVICE_REMOVED, S_OK}) {
    direct3d_.create_texture = answer;
    direct3d_.removed_reason = DXGI_ERROR_DEVICE_RESET;
    const absl::Status refused = MakeTexture().status();
    EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
    EXPECT_NE(refused.message().find("0x887a0007"), std::string::npos) << refused;
    EXPECT_LT(direct3d_.device_references, references);
    direct3d_.create_texture = S_OK;
    direct3d_.removed_reason = S_OK;
    EXPECT_TRUE(MakeTexture().ok());
    EXPECT_EQ(direct3d_.device_references, references);
  }
  EXPECT_EQ(opened_, 3);
}

// A refusal by a device that is well says nothing of the device, and is the request's own.
TEST_F(AllocatorDeviceTest, RefusalsKeepTheDevice) {
  direct3d_.create_texture = E_INVALIDARG;
  EXPECT_TRUE(absl::IsInvalidArgument(MakeTexture().status()));
  direct3d_.create_texture = S_OK;
  EXPECT_TRUE(MakeTexture().ok());
  EXPECT_EQ(opened_, 1);
}

}  // namespace
}  // namespace sluice::os
