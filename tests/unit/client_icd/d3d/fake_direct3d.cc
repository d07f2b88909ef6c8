// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/client_icd/d3d/fake_direct3d.h"

#include "broker/os/threads.h"

namespace sluice::sharing {
namespace {

FakeDirect3d* g_direct3d = nullptr;
UINT64 g_fence_value = 0;
HANDLE g_fence_event = nullptr;

FakeDirect3d::Texture* TextureOf(void* interface_pointer) {
  for (FakeDirect3d::Texture& one : g_direct3d->textures) {
    if (one.texture.get() == interface_pointer || one.resource.get() == interface_pointer ||
        one.mutex.get() == interface_pointer)
      return &one;
  }
  std::abort();
}

void NoteThread() {
  if (g_direct3d->only_thread != 0 && g_direct3d->only_thread != ThisThreadNumber())
    ++g_direct3d->strangers;
}

// IUnknown of the textures' interfaces.
template <typename I>
ULONG WINAPI AddTextureRef(I* self) {
  NoteThread();
  return static_cast<ULONG>(++TextureOf(self)->references);
}
template <typename I>
ULONG WINAPI ReleaseTexture(I* self) {
  NoteThread();
  return static_cast<ULONG>(--TextureOf(self)->references);
}
template <typename I>
HRESULT WINAPI QueryTexture(I* self, REFIID id, void** out) {
  NoteThread();
  FakeDirect3d::Texture* const texture = TextureOf(self);
  *out = nullptr;
  if (id == __uuidof(IDXGIResource1)) {
    if (FAILED(g_direct3d->resource1)) return g_direct3d->resource1;
    *out = texture->resource.get();
  } else if (id == __uuidof(IDXGIKeyedMutex)) {
    if ((texture->desc.MiscFlags & D3D11_RESOURCE_MISC_SHARED_KEYEDMUTEX) == 0)
      return E_NOINTERFACE;
    *out = texture->mutex.get();
  } else if (id == __uuidof(IUnknown) || id == __uuidof(ID3D11Texture2D) ||
             id == __uuidof(ID3D11Resource)) {
    *out = texture->texture.get();
  } else {
    return E_NOINTERFACE;
  }
  ++texture->references;
  return S_OK;
}
template <typename I>
void SetUnknown(FakeInterface<I>* fake) {
  fake->Set(&I::AddRef, &AddTextureRef<I>);
  fake->Set(&I::Release, &ReleaseTexture<I>);
  fake->SetQueryInterface(&QueryTexture<I>);
}

HRESULT WINAPI CreateSharedHandle(IDXGIResource1*, const SECURITY_ATTRIBUTES*, DWORD access,
                                  LPCWSTR name, HANDLE* out) {
  *out = nullptr;
  if (FAILED(g_direct3d->create_shared)) return g_direct3d->create_shared;
  g_direct3d->shared_access = access;
  if (name != nullptr) return E_INVALIDARG;
  // Anything that has a handle.
  if (g_direct3d->gives_handle) *out = ::CreateEventW(nullptr, TRUE, FALSE, nullptr);
  g_direct3d->shared_handle = *out;
  return S_OK;
}

HRESULT WINAPI AcquireSync(IDXGIKeyedMutex*, UINT64 key, DWORD milliseconds) {
  FakeDirect3d& world = *g_direct3d;
  world.Note("take" + std::to_string(key));
  world.acquire_bound = milliseconds;
  if (world.acquire_sync != S_OK) return world.acquire_sync;
  if (world.mutex_held || world.mutex_key != key) return static_cast<HRESULT>(WAIT_TIMEOUT);
  world.mutex_held = true;
  return S_OK;
}
HRESULT WINAPI ReleaseSync(IDXGIKeyedMutex*, UINT64 key) {
  FakeDirect3d& world = *g_direct3d;
  world.Note("give" + std::to_string(key));
  if (!world.mutex_held) return DXGI_ERROR_INVALID_CALL;
  world.mutex_held = false;
  world.mutex_key = key;
  return S_OK;
}

// IUnknown of what belongs to the device.
template <typename I>
ULONG WINAPI AddDeviceRef(I*) {
  NoteThread();
  return static_cast<ULONG>(++g_direct3d->device_references);
}
template <typename I>
ULONG WINAPI ReleaseDevice(I*) {
  NoteThread();
  return static_cast<ULONG>(--g_direct3d->device_references);
}
template <typename I>
void SetDeviceRefs(FakeInterface<I>* fake) {
  fake->Set(&I::AddRef, &AddDeviceRef<I>);
  fake->Set(&I::Release, &ReleaseDevice<I>);
}

template <typename I, typename Newer>
HRESULT WINAPI QueryNewer(I* self, REFIID id, void** out) {
  *out = nullptr;
  if (id != __uuidof(Newer) || !g_direct3d->has_fences) return E_NOINTERFACE;
  *out = self;
  ++g_direct3d->device_references;
  return S_OK;
}

HRESULT WINAPI CreateTexture2D(ID3D11Device5*, const D3D11_TEXTURE2D_DESC* desc,
                               const D3D11_SUBRESOURCE_DATA*, ID3D11Texture2D** out) {
  *out = nullptr;
  if (FAILED(g_direct3d->create_texture)) return g_direct3d->create_texture;
  FakeDirect3d::Texture* const made = g_direct3d->NewTexture(*desc);
  made->name = "ours";
  *out = made->get();
  return S_OK;
}

void WINAPI CopySubresourceRegion(ID3D11DeviceContext4*, ID3D11Resource* to, UINT to_index, UINT,
                                  UINT, UINT, ID3D11Resource* from, UINT from_index,
                                  const D3D11_BOX*) {
  const auto name = [](ID3D11Resource* one, UINT index) {
    return TextureOf(one)->name + std::to_string(index);
  };
  g_direct3d->Note(name(from, from_index) + ">" + name(to, to_index));
}

HRESULT WINAPI GetData(ID3D11DeviceContext4*, ID3D11Asynchronous*, void*, UINT, UINT) {
  if (FAILED(g_direct3d->removed_reason)) return g_direct3d->removed_reason;
  if (g_direct3d->query_answers_pending == 0) return S_OK;
  if (g_direct3d->query_answers_pending > 0) --g_direct3d->query_answers_pending;
  return S_FALSE;
}

HRESULT WINAPI Signal(ID3D11DeviceContext4*, ID3D11Fence*, UINT64 value) {
  g_direct3d->Note("signal" + std::to_string(value));
  return S_OK;
}
// Done when it is waited for, and not before.
UINT64 WINAPI GetCompletedValue(ID3D11Fence*) { return g_fence_value; }
HRESULT WINAPI SetEventOnCompletion(ID3D11Fence*, UINT64 value, HANDLE event) {
  g_direct3d->Note("sleep" + std::to_string(value));
  g_fence_event = event;
  if (!g_direct3d->fence_completes) return S_OK;
  g_fence_value = value;
  ::SetEvent(event);
  return S_OK;
}

}  // namespace

FakeDirect3d::Texture::Texture(const D3D11_TEXTURE2D_DESC& about) : desc(about) {
  SetUnknown(&texture);
  SetUnknown(&resource);
  SetUnknown(&mutex);
  texture.Set(
      &ID3D11Texture2D::GetDesc,
      +[](ID3D11Texture2D* self, D3D11_TEXTURE2D_DESC* out) { *out = TextureOf(self)->desc; });
  resource.Set(&IDXGIResource1::CreateSharedHandle, &CreateSharedHandle);
  mutex.Set(&IDXGIKeyedMutex::AcquireSync, &AcquireSync);
  mutex.Set(&IDXGIKeyedMutex::ReleaseSync, &ReleaseSync);
}

FakeDirect3d::FakeDirect3d() {
  g_direct3d = this;
  g_fence_value = 0;
  SetDeviceRefs(&device_);
  device_.SetQueryInterface(&QueryNewer<ID3D11Device5, ID3D11Device5>);
  device_.Set(&ID3D11Device5::CreateTexture2D, &CreateTexture2D);
  device_.Set(
      &ID3D11Device5::GetDeviceRemovedReason,
      +[](ID3D11Device5*) { return g_direct3d->removed_reason; });
  device_.Set(
      &ID3D11Device5::GetImmediateContext, +[](ID3D11Device5*, ID3D11DeviceContext** out) {
        ++g_direct3d->device_references;
        *out = g_direct3d->commands_.get();
      });
  device_.Set(
      &ID3D11Device5::CreateQuery,
      +[](ID3D11Device5*, const D3D11_QUERY_DESC* desc, ID3D11Query** out) -> HRESULT {
        if (desc->Query != D3D11_QUERY_EVENT) return E_INVALIDARG;
        ++g_direct3d->device_references;
        *out = g_direct3d->query_.get();
        return S_OK;
      });
  device_.Set(
      &ID3D11Device5::CreateFence,
      +[](ID3D11Device5*, UINT64, D3D11_FENCE_FLAG, REFIID, void** out) -> HRESULT {
        ++g_direct3d->device_references;
        *out = g_direct3d->fence_.get();
        return S_OK;
      });

  device_.Set(
      &ID3D11Device5::CheckFormatSupport, +[](ID3D11Device5*, DXGI_FORMAT, UINT* out) -> HRESULT {
        *out = D3D11_FORMAT_SUPPORT_TEXTURE2D | D3D11_FORMAT_SUPPORT_SHADER_SAMPLE;
        return S_OK;
      });

  SetDeviceRefs(&commands_);
  commands_.SetQueryInterface(&QueryNewer<ID3D11DeviceContext4, ID3D11DeviceContext4>);
  commands_.Set(
      &ID3D11DeviceContext4::GetPredication,
      +[](ID3D11DeviceContext4*, ID3D11Predicate** out, BOOL* value) {
        *out = nullptr;
        *value = FALSE;
      });
  commands_.Set(&ID3D11DeviceContext4::CopySubresourceRegion, &CopySubresourceRegion);
  commands_.Set(
      &ID3D11DeviceContext4::End,
      +[](ID3D11DeviceContext4*, ID3D11Asynchronous*) { g_direct3d->Note("end"); });
  commands_.Set(
      &ID3D11DeviceContext4::Flush, +[](ID3D11DeviceContext4*) { g_direct3d->Note("flush"); });
  commands_.Set(&ID3D11DeviceContext4::GetData, &GetData);
  commands_.Set(&ID3D11DeviceContext4::Signal, &Signal);

  SetDeviceRefs(&query_);
  SetDeviceRefs(&fence_);
  fence_.Set(&ID3D11Fence::GetCompletedValue, &GetCompletedValue);
  fence_.Set(&ID3D11Fence::SetEventOnCompletion, &SetEventOnCompletion);
  fence_.Set(
      &ID3D11Fence::CreateSharedHandle,
      +[](ID3D11Fence*, const SECURITY_ATTRIBUTES*, DWORD, LPCWSTR, HANDLE* out) -> HRESULT {
        *out = ::CreateEventW(nullptr, TRUE, FALSE, nullptr);
        return S_OK;
      });
}

FakeDirect3d::~FakeDirect3d() { g_direct3d = nullptr; }

FakeDirect3d::Texture* FakeDirect3d::NewTexture(const D3D11_TEXTURE2D_DESC& desc) {
  textures.emplace_back(desc).name = "app";
  return &textures.back();
}

D3D11_TEXTURE2D_DESC FakeDirect3d::Desc(UINT misc_flags, UINT width, UINT height) {
  D3D11_TEXTURE2D_DESC desc = {};
  desc.Width = width;
  desc.Height = height;
  desc.MipLevels = 1;
  desc.ArraySize = 1;
  desc.Format = DXGI_FORMAT_R8G8B8A8_UNORM;
  desc.SampleDesc.Count = 1;
  desc.BindFlags = D3D11_BIND_SHADER_RESOURCE;
  desc.MiscFlags = misc_flags;
  return desc;
}

}  // namespace sluice::sharing
