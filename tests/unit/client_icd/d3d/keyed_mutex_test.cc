// SPDX-License-Identifier: Apache-2.0
//
// The worker's end of a texture's keyed mutex: on a device that is made up, since Wine's shares
// nothing by handle, and on this system's own as far as that goes.
#include "daemon/worker/memory/keyed_mutex.h"
#include "platform_win/worker/keyed_mutex.h"

#include <dxgi.h>
#include <gtest/gtest.h>

#include <cstring>

#include "broker/os/graphics_handle.h"
#include "tests/unit/client_icd/d3d/fake_direct3d.h"

namespace sluice::client {
namespace {

using sharing::FakeDirect3d;

// Of anything that has a handle.
os::UniqueFd NewDescriptor(HANDLE* handle = nullptr) {
  HANDLE const event = ::CreateEventW(nullptr, TRUE, FALSE, nullptr);
  if (handle != nullptr) *handle = event;
  return os::AdoptGraphicsHandle(reinterpret_cast<uintptr_t>(event));
}

class KeyedMutexTest : public testing::Test {
 protected:
  KeyedMutexTest()
      : device_(os::ComPtr<ID3D11Device1>::Of(direct3d_.device())),
        texture_(direct3d_.NewTexture(FakeDirect3d::Desc(D3D11_RESOURCE_MISC_SHARED_KEYEDMUTEX |
                                                         D3D11_RESOURCE_MISC_SHARED_NTHANDLE))) {}

  FakeDirect3d direct3d_;
  const os::ComPtr<ID3D11Device1> device_;
  FakeDirect3d::Texture* const texture_;
};

// The texture behind the descriptor is opened, and kept as long as its mutex, which is taken with
// the user's key and given back with the maker's.
TEST_F(KeyedMutexTest, OpensTakesAndGives) {
  HANDLE handle = nullptr;
  const os::UniqueFd fd = NewDescriptor(&handle);
  {
    const auto mutex = worker::OpenKeyedMutexOn(device_.get(), fd.get());
    ASSERT_TRUE(mutex.ok()) << mutex.status();
    EXPECT_EQ(direct3d_.opened_resource, handle);
    EXPECT_GT(texture_->references, 1);
    EXPECT_TRUE(
        absl::IsDeadlineExceeded((*mutex)->Acquire(os::kTextureUsersKey, absl::Milliseconds(5))));
    EXPECT_EQ(direct3d_.acquire_bound, 5u);
    direct3d_.mutex_key = os::kTextureUsersKey;  // The maker gives it.
    EXPECT_TRUE((*mutex)->Acquire(os::kTextureUsersKey, absl::Seconds(1)).ok());
    EXPECT_TRUE((*mutex)->Release(os::kTextureMakersKey).ok());
    EXPECT_EQ(direct3d_.mutex_key, os::kTextureMakersKey);
    EXPECT_FALSE((*mutex)->Release(os::kTextureMakersKey).ok()) << "not held";
    direct3d_.acquire_sync = static_cast<HRESULT>(WAIT_ABANDONED);
    EXPECT_TRUE(absl::IsDataLoss((*mutex)->Acquire(os::kTextureUsersKey, absl::Seconds(1))));
  }
  EXPECT_EQ(texture_->references, 1);
}

// A texture that cannot be opened, or has no keyed mutex, says why and is let go.
TEST_F(KeyedMutexTest, WhatIsNoSuchTexture) {
  const os::UniqueFd fd = NewDescriptor();
  direct3d_.open_shared = E_ACCESSDENIED;
  const absl::Status refused = worker::OpenKeyedMutexOn(device_.get(), fd.get()).status();
  EXPECT_NE(refused.message().find("OpenSharedResource1 answers 0x80070005"), std::string::npos)
      << refused;
  direct3d_.open_shared = S_OK;
  texture_->desc.MiscFlags = D3D11_RESOURCE_MISC_SHARED_NTHANDLE;
  EXPECT_TRUE(absl::IsUnimplemented(worker::OpenKeyedMutexOn(device_.get(), fd.get()).status()));
  EXPECT_EQ(texture_->references, 1);
  direct3d_.opened_resource = nullptr;
  EXPECT_TRUE(absl::IsInvalidArgument(worker::OpenKeyedMutexOn(device_.get(), -1).status()));
  EXPECT_EQ(direct3d_.opened_resource, nullptr);
}

// --- This system's own.

std::optional<os::AdapterId> FirstAdapter() {
  os::ComPtr<IDXGIFactory1> factory;
  os::ComPtr<IDXGIAdapter> adapter;
  DXGI_ADAPTER_DESC desc;
  if (FAILED(::CreateDXGIFactory1(__uuidof(IDXGIFactory1), factory.out_void())) ||
      FAILED(factory->EnumAdapters(0, adapter.out())) || FAILED(adapter->GetDesc(&desc)))
    return std::nullopt;
  os::AdapterId id;
  std::memcpy(id.data(), &desc.AdapterLuid, id.size());
  return id;
}

// The adapter is found by its LUID and a device made on it, which then is asked for the texture:
// what is none is refused there, and not before.
TEST(KeyedMutexOfThisSystem, FindsTheAdapter) {
  const std::optional<os::AdapterId> adapter = FirstAdapter();
  if (!adapter) GTEST_SKIP() << "DXGI has no adapter (no display?)";
  const os::UniqueFd fd = NewDescriptor();
  for (int round = 0; round < 2; ++round) {
    const absl::Status refused = worker::OpenKeyedMutex(fd.get(), *adapter).status();
    EXPECT_NE(refused.message().find("OpenSharedResource1 answers"), std::string::npos) << refused;
  }
  os::AdapterId other = *adapter;
  other[0] ^= 0xff;
  EXPECT_TRUE(absl::IsNotFound(worker::OpenKeyedMutex(fd.get(), other).status()));
}

}  // namespace
}  // namespace sluice::client
