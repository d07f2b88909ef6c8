// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/client_icd/d3d/fake_direct3d.h"

#include <algorithm>

#include "broker/os/threads.h"

namespace sluice::client::sharing {
namespace {

FakeDirect3d* g_direct3d = nullptr;

template <typename List>
FakeDirect3d::Resource* FindIn(List& list, void* interface_pointer) {
  for (FakeDirect3d::Resource& one : list) {
    if (one.self() == interface_pointer || one.resource.get() == interface_pointer ||
        one.mutex.get() == interface_pointer)
      return &one;
  }
  return nullptr;
}
FakeDirect3d::Resource* ResourceOf(void* interface_pointer) {
  FakeDirect3d::Resource* found = FindIn(g_direct3d->textures, interface_pointer);
  if (found == nullptr) found = FindIn(g_direct3d->buffers, interface_pointer);
  return found != nullptr ? found : (std::abort(), nullptr);
}

FakeDirect3d::Fence& FenceOf(ID3D11Fence* fence) {
  for (FakeDirect3d::Fence& one : g_direct3d->fences)
    if (one.fence.get() == fence) return one;
  std::abort();
}

void NoteThread() {
  if (g_direct3d->only_thread != 0 && g_direct3d->only_thread != os::ThisThreadNumber())
    ++g_direct3d->strangers;
}

// IUnknown of the resources' interfaces.
template <typename I>
ULONG WINAPI AddResourceRef(I* self) {
  NoteThread();
  return static_cast<ULONG>(++ResourceOf(self)->references);
}
template <typename I>
ULONG WINAPI ReleaseResource(I* self) {
  NoteThread();
  return static_cast<ULONG>(--ResourceOf(self)->references);
}
template <typename I>
HRESULT WINAPI QueryResource(I* self, REFIID id, void** out) {
  NoteThread();
  FakeDirect3d::Resource* const resource = ResourceOf(self);
  *out = nullptr;
  if (id == __uuidof(IDXGIResource1)) {
    if (FAILED(g_direct3d->resource1)) return g_direct3d->resource1;
    *out = resource->resource.get();
  } else if (id == __uuidof(IDXGIKeyedMutex)) {
    if ((resource->misc_flags() & D3D11_RESOURCE_MISC_SHARED_KEYEDMUTEX) == 0) return E_NOINTERFACE;
    *out = resource->mutex.get();
  } else if (id == __uuidof(IUnknown) || id == __uuidof(ID3D11Resource) || id == resource->id()) {
    *out = resource->self();
  } else {
    return E_NOINTERFACE;
  }
  ++resource->references;
  return S_OK;
}
template <typename I>
void SetUnknown(FakeInterface<I>* fake) {
  fake->Set(&I::AddRef, &AddResourceRef<I>);
  fake->Set(&I::Release, &ReleaseResource<I>);
  fake->SetQueryInterface(&QueryResource<I>);
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
  const bool has = id == __uuidof(ID3D11Device1) ? g_direct3d->has_device1
                                                 : id == __uuidof(Newer) && g_direct3d->has_fences;
  if (!has) return E_NOINTERFACE;
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

HRESULT WINAPI CreateBuffer(ID3D11Device5*, const D3D11_BUFFER_DESC* desc,
                            const D3D11_SUBRESOURCE_DATA* first, ID3D11Buffer** out) {
  *out = nullptr;
  if (FAILED(g_direct3d->create_buffer)) return g_direct3d->create_buffer;
  FakeDirect3d::Buffer* const made = g_direct3d->NewBuffer(*desc);
  made->name = "ours";
  if (first != nullptr) {
    const auto* const bytes = static_cast<const uint8_t*>(first->pSysMem);
    made->zeros = static_cast<size_t>(std::count(bytes, bytes + desc->ByteWidth, 0));
  }
  *out = made->get();
  return S_OK;
}

HRESULT NewFence(HRESULT answer, const char* name, void** out) {
  *out = nullptr;
  if (FAILED(answer)) return answer;
  FakeDirect3d::Fence& made = g_direct3d->fences.emplace_back();
  made.name = name;
  ++g_direct3d->device_references;
  *out = made.fence.get();
  return S_OK;
}
HRESULT WINAPI CreateFence(ID3D11Device5*, UINT64, D3D11_FENCE_FLAG, REFIID, void** out) {
  return NewFence(g_direct3d->create_fence, "", out);
}
HRESULT WINAPI OpenSharedFence(ID3D11Device5*, HANDLE handle, REFIID, void** out) {
  g_direct3d->opened_fence = handle;
  return NewFence(g_direct3d->open_fence, "shared", out);
}
HRESULT WINAPI OpenSharedResource1(ID3D11Device5*, HANDLE handle, REFIID id, void** out) {
  *out = nullptr;
  g_direct3d->opened_resource = handle;
  if (FAILED(g_direct3d->open_shared)) return g_direct3d->open_shared;
  return g_direct3d->textures.back().get()->QueryInterface(id, out);
}

void WINAPI CopySubresourceRegion(ID3D11DeviceContext4*, ID3D11Resource* to, UINT to_index, UINT,
                                  UINT, UINT, ID3D11Resource* from, UINT from_index,
                                  const D3D11_BOX*) {
  const auto name = [](ID3D11Resource* one, UINT index) {
    return ResourceOf(one)->name + std::to_string(index);
  };
  g_direct3d->Note(name(from, from_index) + ">" + name(to, to_index));
}

HRESULT WINAPI GetData(ID3D11DeviceContext4*, ID3D11Asynchronous*, void*, UINT, UINT) {
  if (FAILED(g_direct3d->removed_reason)) return g_direct3d->removed_reason;
  if (g_direct3d->query_answers_pending == 0) return S_OK;
  if (g_direct3d->query_answers_pending > 0) --g_direct3d->query_answers_pending;
  return S_FALSE;
}

HRESULT WINAPI Map(ID3D11DeviceContext4*, ID3D11Resource* resource, UINT, D3D11_MAP, UINT,
                   D3D11_MAPPED_SUBRESOURCE* out) {
  constexpr UINT kPitch = 1024;
  FakeDirect3d::Resource* const mapped = ResourceOf(resource);
  g_direct3d->Note("map:" + mapped->name);
  mapped->memory.resize(kPitch * 64);
  *out = {mapped->memory.data(), kPitch, kPitch * 64};
  return S_OK;
}

HRESULT WINAPI Signal(ID3D11DeviceContext4*, ID3D11Fence* fence, UINT64 value) {
  g_direct3d->Note(FenceOf(fence).name + "signal" + std::to_string(value));
  return g_direct3d->signal;
}
// That of a device that was removed has all values at once.
UINT64 WINAPI GetCompletedValue(ID3D11Fence* self) {
  if (FAILED(g_direct3d->removed_reason)) return UINT64_MAX;
  FakeDirect3d::Fence& fence = FenceOf(self);
  const UINT64 value = fence.value;
  if (fence.event != nullptr && g_direct3d->early_wakes > 0) {
    if (--g_direct3d->early_wakes == 0) fence.value = fence.awaited;
    ::SetEvent(fence.event);
  }
  return value;
}
HRESULT WINAPI SetEventOnCompletion(ID3D11Fence* self, UINT64 value, HANDLE event) {
  FakeDirect3d::Fence& fence = FenceOf(self);
  g_direct3d->Note(fence.name + "sleep" + std::to_string(value));
  fence.awaited = value;
  fence.event = event;
  if (!g_direct3d->fence_completes) return S_OK;
  if (g_direct3d->early_wakes == 0) fence.value = value;
  ::SetEvent(event);
  return S_OK;
}

}  // namespace

FakeDirect3d::Resource::Resource() {
  SetUnknown(&resource);
  SetUnknown(&mutex);
  resource.Set(&IDXGIResource1::CreateSharedHandle, &CreateSharedHandle);
  mutex.Set(&IDXGIKeyedMutex::AcquireSync, &AcquireSync);
  mutex.Set(&IDXGIKeyedMutex::ReleaseSync, &ReleaseSync);
}

FakeDirect3d::Texture::Texture(const D3D11_TEXTURE2D_DESC& about) : desc(about) {
  SetUnknown(&texture);
  texture.Set(
      &ID3D11Texture2D::GetDesc, +[](ID3D11Texture2D* self, D3D11_TEXTURE2D_DESC* out) {
        *out = static_cast<Texture*>(ResourceOf(self))->desc;
      });
}

FakeDirect3d::Buffer::Buffer(const D3D11_BUFFER_DESC& about) : desc(about) {
  SetUnknown(&buffer);
  buffer.Set(
      &ID3D11Buffer::GetDesc, +[](ID3D11Buffer* self, D3D11_BUFFER_DESC* out) {
        *out = static_cast<Buffer*>(ResourceOf(self))->desc;
      });
}

FakeDirect3d::Fence::Fence() {
  SetDeviceRefs(&fence);
  fence.Set(&ID3D11Fence::GetCompletedValue, &GetCompletedValue);
  fence.Set(&ID3D11Fence::SetEventOnCompletion, &SetEventOnCompletion);
  fence.Set(
      &ID3D11Fence::CreateSharedHandle,
      +[](ID3D11Fence*, const SECURITY_ATTRIBUTES*, DWORD, LPCWSTR, HANDLE* out) -> HRESULT {
        *out = ::CreateEventW(nullptr, TRUE, FALSE, nullptr);
        return S_OK;
      });
}

FakeDirect3d::FakeDirect3d() {
  g_direct3d = this;
  SetDeviceRefs(&device_);
  device_.SetQueryInterface(&QueryNewer<ID3D11Device5, ID3D11Device5>);
  device_.Set(&ID3D11Device5::CreateTexture2D, &CreateTexture2D);
  device_.Set(&ID3D11Device5::CreateBuffer, &CreateBuffer);
  device_.Set(&ID3D11Device5::CreateFence, &CreateFence);
  device_.Set(&ID3D11Device5::OpenSharedFence, &OpenSharedFence);
  device_.Set(&ID3D11Device5::OpenSharedResource1, &OpenSharedResource1);
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
  commands_.Set(&ID3D11DeviceContext4::Map, &Map);
  commands_.Set(
      &ID3D11DeviceContext4::Unmap, +[](ID3D11DeviceContext4*, ID3D11Resource*, UINT) {});

  SetDeviceRefs(&query_);
}

FakeDirect3d::~FakeDirect3d() { g_direct3d = nullptr; }

FakeDirect3d::Texture* FakeDirect3d::NewTexture(const D3D11_TEXTURE2D_DESC& desc) {
  textures.emplace_back(desc).name = "app";
  return &textures.back();
}

FakeDirect3d::Buffer* FakeDirect3d::NewBuffer(const D3D11_BUFFER_DESC& desc) {
  buffers.emplace_back(desc).name = "app";
  return &buffers.back();
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

}  // namespace sluice::client::sharing
