// SPDX-License-Identifier: Apache-2.0
//
// Devices that end while they are shared, of the APIs of which Wine loses none: Direct3D 10 and
// 9Ex. They are made up, one resource each; a Direct3D 11 device is in d3d_handles_test.cc, a lost
// one of Direct3D 9 in tests/sharing/d3d.
#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "absl/time/clock.h"
#include "client_icd/sharing/d3d/d3d_memory.h"
#include "client_icd/sharing/d3d/dx9_surface.h"
#include "tests/unit/client_icd/d3d/fake_com.h"

namespace sluice::client::sharing {
namespace {

absl::Time InTime() { return absl::Now() + absl::Seconds(10); }

// An interface that is nobody's but the test's: it has no other, and counts no references.
template <typename I>
void SetAlone(FakeInterface<I>* fake) {
  fake->Set(
      &I::AddRef, +[](I*) -> ULONG { return 2; });
  fake->Set(
      &I::Release, +[](I*) -> ULONG { return 1; });
  fake->SetQueryInterface(+[](I* self, REFIID id, void** out) -> HRESULT {
    *out = id == __uuidof(I) || id == __uuidof(IUnknown) ? self : nullptr;
    return *out == nullptr ? E_NOINTERFACE : S_OK;
  });
}

// --- Direct3D 10

class RemovedDirect3d10 : public testing::Test {
 protected:
  RemovedDirect3d10() {
    world_ = this;
    SetAlone(&device_);
    SetAlone(&texture_);
    SetAlone(&buffer_);
    SetAlone(&query_);
    device_.Set(
        &ID3D10Device::CreateQuery,
        +[](ID3D10Device*, const D3D10_QUERY_DESC*, ID3D10Query** out) -> HRESULT {
          *out = world_->query_.get();
          return S_OK;
        });
    device_.Set(
        &ID3D10Device::CreateTexture2D,
        +[](ID3D10Device*, const D3D10_TEXTURE2D_DESC*, const D3D10_SUBRESOURCE_DATA*,
            ID3D10Texture2D** out) -> HRESULT {
          *out = world_->texture_.get();
          return world_->create;
        });
    device_.Set(
        &ID3D10Device::CreateBuffer,
        +[](ID3D10Device*, const D3D10_BUFFER_DESC*, const D3D10_SUBRESOURCE_DATA*,
            ID3D10Buffer** out) -> HRESULT {
          *out = world_->buffer_.get();
          return world_->create;
        });
    device_.Set(
        &ID3D10Device::GetPredication,
        +[](ID3D10Device*, ID3D10Predicate** out, BOOL*) { *out = nullptr; });
    device_.Set(
        &ID3D10Device::CopySubresourceRegion,
        +[](ID3D10Device*, ID3D10Resource*, UINT, UINT, UINT, UINT, ID3D10Resource*, UINT,
            const D3D10_BOX*) { ++world_->copies; });
    device_.Set(
        &ID3D10Device::Flush, +[](ID3D10Device*) {});
    device_.Set(
        &ID3D10Device::GetDeviceRemovedReason, +[](ID3D10Device*) { return world_->removed; });
    query_.Set(
        &ID3D10Query::End, +[](ID3D10Query*) {});
    query_.Set(
        &ID3D10Query::GetData,
        +[](ID3D10Query*, void*, UINT, UINT) -> HRESULT { return world_->done; });
    texture_.Set(
        &ID3D10Texture2D::Map,
        +[](ID3D10Texture2D*, UINT, D3D10_MAP, UINT, D3D10_MAPPED_TEXTURE2D* out) -> HRESULT {
          ++world_->maps;
          *out = {world_->memory, 32};
          return S_OK;
        });
    texture_.Set(
        &ID3D10Texture2D::Unmap, +[](ID3D10Texture2D*, UINT) {});
    buffer_.Set(
        &ID3D10Buffer::Map, +[](ID3D10Buffer*, D3D10_MAP, UINT, void** out) -> HRESULT {
          ++world_->maps;
          *out = world_->memory;
          return S_OK;
        });
    buffer_.Set(
        &ID3D10Buffer::Unmap, +[](ID3D10Buffer*) {});
  }

  std::unique_ptr<D3dObject<Direct3d10>> Make(D3dShape::Kind kind) {
    const bool is_buffer = kind == D3dShape::Kind::kBuffer;
    D3dSubresource<Direct3d10> from;
    from.shape.kind = kind;
    from.shape.width = 8;
    from.shape.height = is_buffer ? 1 : 4;
    from.extent = *ExtentOf(from.shape, 0);
    from.element_bytes = is_buffer ? 1 : 4;
    if (is_buffer) {
      from.resource = os::ComPtr<ID3D10Resource>::Share(buffer_.get());
    } else {
      from.resource = os::ComPtr<ID3D10Resource>::Share(texture_.get());
    }
    return std::make_unique<D3dObject<Direct3d10>>(
        nullptr, os::ComPtr<ID3D10Device>::Share(device_.get()), std::move(from));
  }
  static constexpr D3dShape::Kind kKinds[] = {D3dShape::Kind::kBuffer, D3dShape::Kind::kTexture2d};

  HRESULT create = S_OK;
  HRESULT removed = S_OK;
  HRESULT done = S_OK;  // Of the event query.
  int copies = 0;
  int maps = 0;
  uint8_t memory[32 * 4] = {};
  uint8_t bytes[32 * 4] = {};

 private:
  static RemovedDirect3d10* world_;
  FakeInterface<ID3D10Device> device_;
  FakeInterface<ID3D10Texture2D> texture_;
  FakeInterface<ID3D10Buffer> buffer_;
  FakeInterface<ID3D10Query> query_;
};
RemovedDirect3d10* RemovedDirect3d10::world_ = nullptr;

// Nothing is read from, and nothing counts as written to, a device that was removed, also if its
// query says that all is done.
TEST_F(RemovedDirect3d10, IsNotStaged) {
  for (const D3dShape::Kind kind : kKinds) {
    for (const HRESULT answer : {DXGI_ERROR_DEVICE_REMOVED, S_OK}) {
      const auto object = Make(kind);
      removed = S_OK;
      done = S_OK;
      ASSERT_EQ(object->Fetch(bytes, InTime()), CL_SUCCESS);
      ASSERT_EQ(object->Store(bytes, InTime()), CL_SUCCESS);
      removed = DXGI_ERROR_DEVICE_REMOVED;
      done = answer;
      maps = 0;
      EXPECT_EQ(object->Store(bytes, InTime()), CL_OUT_OF_RESOURCES);
      EXPECT_EQ(object->Fetch(bytes, InTime()), CL_OUT_OF_RESOURCES);
      EXPECT_EQ(object->EndImported(true, InTime()), CL_OUT_OF_RESOURCES);
      EXPECT_EQ(maps, 0);
    }
  }
}

// A device that makes no staging resource, as one that was removed does not, fails the acquire.
TEST_F(RemovedDirect3d10, MakesNothing) {
  create = DXGI_ERROR_DEVICE_REMOVED;
  for (const D3dShape::Kind kind : kKinds) {
    const auto object = Make(kind);
    EXPECT_EQ(object->Fetch(bytes, InTime()), CL_OUT_OF_RESOURCES);
    EXPECT_EQ(object->Store(bytes, InTime()), CL_OUT_OF_RESOURCES);
  }
  EXPECT_EQ(copies, 0);
}

// Work that does not end is waited for as long as the call may take, and no longer.
TEST_F(RemovedDirect3d10, WaitsAreBounded) {
  for (const D3dShape::Kind kind : kKinds) {
    const auto object = Make(kind);
    done = S_FALSE;
    EXPECT_EQ(object->Fetch(bytes, absl::Now() + absl::Milliseconds(20)), CL_OUT_OF_RESOURCES);
    EXPECT_EQ(object->Store(bytes, absl::Now() + absl::Milliseconds(20)), CL_OUT_OF_RESOURCES);
    EXPECT_EQ(maps, 0) << "mapping would wait without a bound";
    done = S_OK;
    EXPECT_EQ(object->Fetch(bytes, InTime()), CL_SUCCESS);
    maps = 0;
  }
}

// --- Direct3D 9Ex

class LostDirect3d9Ex : public testing::Test {
 protected:
  LostDirect3d9Ex() {
    world_ = this;
    SetAlone(&device_);
    SetAlone(&surface_);
    SetAlone(&query_);
    device_.Set(
        &IDirect3DDevice9Ex::CreateQuery,
        +[](IDirect3DDevice9Ex*, D3DQUERYTYPE, IDirect3DQuery9** out) -> HRESULT {
          *out = world_->query_.get();
          return D3D_OK;
        });
    device_.Set(
        &IDirect3DDevice9Ex::CheckDeviceState,
        +[](IDirect3DDevice9Ex*, HWND) -> HRESULT { return world_->state; });
    query_.Set(
        &IDirect3DQuery9::Issue, +[](IDirect3DQuery9*, DWORD) -> HRESULT { return D3D_OK; });
    query_.Set(
        &IDirect3DQuery9::GetData,
        +[](IDirect3DQuery9*, void*, DWORD, DWORD) -> HRESULT { return world_->done; });
    surface_.Set(
        &IDirect3DSurface9::GetDesc, +[](IDirect3DSurface9*, D3DSURFACE_DESC* out) -> HRESULT {
          *out = {};
          out->Format = D3DFMT_A8R8G8B8;
          out->Width = 8;
          out->Height = 4;
          return D3D_OK;
        });
    surface_.Set(
        &IDirect3DSurface9::GetContainer, +[](IDirect3DSurface9*, REFIID, void** out) -> HRESULT {
          *out = nullptr;
          return E_NOINTERFACE;
        });
    surface_.Set(
        &IDirect3DSurface9::LockRect,
        +[](IDirect3DSurface9*, D3DLOCKED_RECT* out, const RECT*, DWORD) -> HRESULT {
          ++world_->locks;
          *out = {32, world_->memory};
          if (world_->while_locked != nullptr) world_->while_locked();
          return D3D_OK;
        });
    surface_.Set(
        &IDirect3DSurface9::UnlockRect, +[](IDirect3DSurface9*) -> HRESULT { return D3D_OK; });
    object = Make();
  }

  std::unique_ptr<Dx9Surface> Make() {
    const Dx9Surface::Source source = {
        CL_ADAPTER_D3D9EX_KHR, {surface_.get(), nullptr}, /*plane=*/0};
    std::unique_ptr<Dx9Surface> made;
    EXPECT_EQ(Dx9Surface::Make(nullptr, device_.get(), source, &made), CL_SUCCESS);
    return made;
  }

  HRESULT state = S_OK;  // Of CheckDeviceState.
  HRESULT done = S_OK;   // Of the event query.
  int locks = 0;
  std::function<void()> while_locked;
  uint8_t memory[32 * 4] = {};
  uint8_t bytes[32 * 4] = {};
  std::unique_ptr<Dx9Surface> object;

 private:
  static LostDirect3d9Ex* world_;
  FakeInterface<IDirect3DDevice9Ex> device_;
  FakeInterface<IDirect3DSurface9> surface_;
  FakeInterface<IDirect3DQuery9> query_;
};
LostDirect3d9Ex* LostDirect3d9Ex::world_ = nullptr;

// Each answer of CheckDeviceState that ends a device fails both ways, though the surface can still
// be locked; those that only concern a window do not.
TEST_F(LostDirect3d9Ex, IsNoSuccess) {
  for (const HRESULT lost : {D3DERR_DEVICELOST, D3DERR_DEVICENOTRESET, D3DERR_DEVICEHUNG,
                             D3DERR_DEVICEREMOVED, D3DERR_DRIVERINTERNALERROR}) {
    state = lost;
    EXPECT_EQ(object->Fetch(bytes, InTime()), CL_OUT_OF_RESOURCES) << lost;
    EXPECT_EQ(object->Store(bytes, InTime()), CL_OUT_OF_RESOURCES) << lost;
  }
  for (const HRESULT well : {D3D_OK, S_PRESENT_OCCLUDED, S_PRESENT_MODE_CHANGED}) {
    state = well;
    EXPECT_EQ(object->Fetch(bytes, InTime()), CL_SUCCESS) << well;
    EXPECT_EQ(object->Store(bytes, InTime()), CL_SUCCESS) << well;
  }
}

// A device that is lost while it is waited for, or does not get done in time, is neither read from
// nor written to.
TEST_F(LostDirect3d9Ex, WaitsAreBounded) {
  for (const HRESULT answer : {D3DERR_DEVICELOST, S_FALSE}) {
    done = answer;
    const absl::Time soon = absl::Now() + absl::Milliseconds(20);
    EXPECT_EQ(object->Fetch(bytes, soon), CL_OUT_OF_RESOURCES) << answer;
    EXPECT_EQ(object->Store(bytes, soon), CL_OUT_OF_RESOURCES) << answer;
  }
  EXPECT_EQ(locks, 0);
}

// A surface that another object of it has locked is not locked once more; who wants it then waits
// as long as the call may take.
TEST_F(LostDirect3d9Ex, OneLockAtATime) {
  const auto other = Make();
  while_locked = [&] {
    while_locked = nullptr;
    const absl::Time soon = absl::Now() + absl::Milliseconds(20);
    EXPECT_EQ(other->Fetch(bytes, soon), CL_OUT_OF_RESOURCES);
    EXPECT_EQ(other->Store(bytes, soon), CL_OUT_OF_RESOURCES);
    EXPECT_EQ(locks, 1);
  };
  EXPECT_EQ(object->Fetch(bytes, InTime()), CL_SUCCESS);
  EXPECT_EQ(other->Fetch(bytes, InTime()), CL_SUCCESS);
  EXPECT_EQ(other->Store(bytes, InTime()), CL_SUCCESS);
}

}  // namespace
}  // namespace sluice::client::sharing
