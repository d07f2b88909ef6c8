// SPDX-License-Identifier: Apache-2.0
// A Direct3D 11 device that shares textures, buffers and fences by handle, which Wine's cannot: it
// copies nothing, and notes in one log what it is asked. Tests say what it answers. One at a time
// in a process; owner: the test. Thread: the test's, but for what waits.
#pragma once

#include <d3d11_4.h>
#include <dxgi1_2.h>

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/client_icd/d3d/fake_com.h"

namespace sluice::client::sharing {

class FakeDirect3d {
 public:
  // Textures and buffers have these: to be shared by handle, and a keyed mutex.
  struct Resource {
    Resource();
    virtual ~Resource() = default;
    // Its own interface, and that one's id.
    virtual IUnknown* self() = 0;
    virtual REFIID id() const = 0;
    virtual UINT misc_flags() const = 0;

    std::string name;
    int references = 1;
    FakeInterface<IDXGIResource1> resource;
    FakeInterface<IDXGIKeyedMutex> mutex;
    std::vector<uint8_t> memory;  // Once it has been mapped.
  };
  struct Texture final : Resource {
    explicit Texture(const D3D11_TEXTURE2D_DESC& about);
    ID3D11Texture2D* get() { return texture.get(); }
    IUnknown* self() override { return get(); }
    REFIID id() const override { return __uuidof(ID3D11Texture2D); }
    UINT misc_flags() const override { return desc.MiscFlags; }

    D3D11_TEXTURE2D_DESC desc;
    FakeInterface<ID3D11Texture2D> texture;
  };
  struct Buffer final : Resource {
    explicit Buffer(const D3D11_BUFFER_DESC& about);
    ID3D11Buffer* get() { return buffer.get(); }
    IUnknown* self() override { return get(); }
    REFIID id() const override { return __uuidof(ID3D11Buffer); }
    UINT misc_flags() const override { return desc.MiscFlags; }

    D3D11_BUFFER_DESC desc;
    size_t zeros = 0;  // With so many it began.
    FakeInterface<ID3D11Buffer> buffer;
  };
  // Done when it is waited for, and not before.
  struct Fence {
    Fence();
    std::string name;  // Of one that was opened: "shared".
    UINT64 value = 0;
    UINT64 awaited = 0;  // By the newest wait.
    HANDLE event = nullptr;
    FakeInterface<ID3D11Fence> fence;
  };

  FakeDirect3d();
  ~FakeDirect3d();

  ID3D11Device* device() { return device_.get(); }
  // The application's, named "app".
  Texture* NewTexture(const D3D11_TEXTURE2D_DESC& desc);
  Buffer* NewBuffer(const D3D11_BUFFER_DESC& desc);
  static D3D11_TEXTURE2D_DESC Desc(UINT misc_flags, UINT width = 64, UINT height = 32);

  // The calls since the last time, in order, with a space behind each.
  std::string TakeLog() { return std::exchange(log, ""); }
  void Note(const std::string& what) { log += what + " "; }

  // --- What it has and answers.
  bool has_fences = false;
  bool has_device1 = true;
  HRESULT resource1 = S_OK;       // Of asking a texture for IDXGIResource1.
  HRESULT create_texture = S_OK;  // Of CreateTexture2D.
  HRESULT create_buffer = S_OK;   // Of CreateBuffer.
  HRESULT create_fence = S_OK;    // Of CreateFence.
  HRESULT open_shared = S_OK;     // Of OpenSharedResource1, which gives the newest texture.
  HRESULT open_fence = S_OK;      // Of OpenSharedFence.
  HRESULT create_shared = S_OK;   // Of CreateSharedHandle.
  bool gives_handle = true;       // Wine gives none with S_OK.
  HRESULT acquire_sync = S_OK;    // Unless it is not free with that key.
  HRESULT removed_reason = S_OK;  // Of the device.
  int query_answers_pending = 0;  // So often S_FALSE; -1: for ever.
  bool fence_completes = true;
  int early_wakes = 0;  // So often a wait's event is set before the fence has its value.
  HRESULT signal = S_OK;
  int only_thread = 0;  // Of one thread, whose number that is; 0: any may use it.
  // --- What was asked.
  int strangers = 0;               // Calls of IUnknown on other threads.
  HANDLE shared_handle = nullptr;  // The newest that was given out.
  DWORD shared_access = 0;
  DWORD acquire_bound = 0;  // Of the newest AcquireSync, in milliseconds.
  UINT64 mutex_key = 0;     // With which the shadow's mutex is free.
  bool mutex_held = false;
  int device_references = 1;         // With those of its children that are its own in Direct3D.
  HANDLE opened_resource = nullptr;  // The newest that were opened.
  HANDLE opened_fence = nullptr;
  std::deque<Texture> textures;
  std::deque<Buffer> buffers;
  std::deque<Fence> fences;
  std::string log;

 private:
  FakeInterface<ID3D11Device5> device_;
  FakeInterface<ID3D11DeviceContext4> commands_;
  FakeInterface<ID3D11Query> query_;
};

}  // namespace sluice::client::sharing
