// SPDX-License-Identifier: Apache-2.0
// A Direct3D 9 or 9Ex application. Owner: the test. Thread: the test's.
#pragma once

#include <CL/cl_dx9_media_sharing.h>
#include <d3d9.h>
#include <gtest/gtest.h>
#include <wrl/client.h>

#include <vector>

#include "tests/sharing/d3d/sharing_fixture.h"

namespace sluice::d3dtest {

template <typename T>
using Com = Microsoft::WRL::ComPtr<T>;

struct Dx9Format {
  D3DFORMAT native;
  cl_image_format cl;
  const char* name;
};
// Table 9.10.4.
const std::vector<Dx9Format>& AllDx9Formats();

constexpr D3DFORMAT kNv12 = static_cast<D3DFORMAT>(MAKEFOURCC('N', 'V', '1', '2'));
constexpr D3DFORMAT kYv12 = static_cast<D3DFORMAT>(MAKEFOURCC('Y', 'V', '1', '2'));
constexpr D3DFORMAT kYuy2 = static_cast<D3DFORMAT>(MAKEFOURCC('Y', 'U', 'Y', '2'));

class Dx9App {
 public:
  // Ex or not, and D3DCREATE_MULTITHREADED or not.
  Dx9App(bool ex, bool multithreaded);

  bool ok() const { return device_ != nullptr; }
  IDirect3DDevice9* device() const { return device_.Get(); }

  // Null if Direct3D does not make it.
  Com<IDirect3DSurface9> Offscreen(D3DFORMAT format, UINT width, UINT height,
                                   D3DPOOL pool = D3DPOOL_DEFAULT);
  Com<IDirect3DSurface9> RenderTarget(D3DFORMAT format, UINT width, UINT height,
                                      D3DMULTISAMPLE_TYPE samples = D3DMULTISAMPLE_NONE);
  // A level of a texture that cannot be locked, or of one that can.
  Com<IDirect3DSurface9> TextureLevel(D3DFORMAT format, UINT width, UINT height, UINT level,
                                      DWORD usage = 0);

  // Tightly packed rows to the surface and from it, by locking it.
  void Write(IDirect3DSurface9* surface, const Bytes& bytes, size_t row_bytes, size_t rows);
  Bytes Read(IDirect3DSurface9* surface, size_t row_bytes, size_t rows);
  // The same for surfaces that cannot be locked.
  void Upload(IDirect3DSurface9* surface, const Bytes& bytes, size_t row_bytes);
  Bytes Download(IDirect3DSurface9* surface, size_t row_bytes);

 private:
  Com<IDirect3D9> direct3d_;
  Com<IDirect3DDevice9> device_;
};

}  // namespace sluice::d3dtest
