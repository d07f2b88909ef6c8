// SPDX-License-Identifier: Apache-2.0
#include "tests/sharing/d3d/dx9_app.h"

#include <cstring>

namespace sluice::d3dtest {

#define ROW(name, order, type) \
  { D3DFMT_##name, {CL_##order, CL_##type}, #name }
const std::vector<Dx9Format>& AllDx9Formats() {
  static const std::vector<Dx9Format> formats = {
      ROW(R32F, R, FLOAT),
      ROW(R16F, R, HALF_FLOAT),
      ROW(L16, R, UNORM_INT16),
      ROW(A8, A, UNORM_INT8),
      ROW(L8, R, UNORM_INT8),
      ROW(G32R32F, RG, FLOAT),
      ROW(G16R16F, RG, HALF_FLOAT),
      ROW(G16R16, RG, UNORM_INT16),
      ROW(A8L8, RG, UNORM_INT8),
      ROW(A32B32G32R32F, RGBA, FLOAT),
      ROW(A16B16G16R16F, RGBA, HALF_FLOAT),
      ROW(A16B16G16R16, RGBA, UNORM_INT16),
      ROW(A8B8G8R8, RGBA, UNORM_INT8),
      ROW(X8B8G8R8, RGBA, UNORM_INT8),
      ROW(A8R8G8B8, BGRA, UNORM_INT8),
      ROW(X8R8G8B8, BGRA, UNORM_INT8),
  };
  return formats;
}
#undef ROW

Dx9App::Dx9App(bool ex, bool multithreaded) {
  D3DPRESENT_PARAMETERS parameters = {};
  parameters.Windowed = TRUE;
  parameters.SwapEffect = D3DSWAPEFFECT_DISCARD;
  parameters.hDeviceWindow = GetDesktopWindow();
  parameters.BackBufferWidth = parameters.BackBufferHeight = 16;
  const DWORD flags = D3DCREATE_HARDWARE_VERTEXPROCESSING | D3DCREATE_FPU_PRESERVE |
                      (multithreaded ? D3DCREATE_MULTITHREADED : 0);
  if (!ex) {
    direct3d_.Attach(Direct3DCreate9(D3D_SDK_VERSION));
    if (direct3d_ == nullptr) return;
    EXPECT_EQ(direct3d_->CreateDevice(D3DADAPTER_DEFAULT, D3DDEVTYPE_HAL, parameters.hDeviceWindow,
                                      flags, &parameters, &device_),
              D3D_OK);
    return;
  }
  Com<IDirect3D9Ex> direct3d;
  if (FAILED(Direct3DCreate9Ex(D3D_SDK_VERSION, &direct3d))) return;
  Com<IDirect3DDevice9Ex> device;
  EXPECT_EQ(direct3d->CreateDeviceEx(D3DADAPTER_DEFAULT, D3DDEVTYPE_HAL, parameters.hDeviceWindow,
                                     flags, &parameters, nullptr, &device),
            D3D_OK);
  direct3d_ = direct3d;
  device_ = device;
}

Com<IDirect3DSurface9> Dx9App::Offscreen(D3DFORMAT format, UINT width, UINT height, D3DPOOL pool) {
  Com<IDirect3DSurface9> surface;
  device_->CreateOffscreenPlainSurface(width, height, format, pool, &surface, nullptr);
  return surface;
}

Com<IDirect3DSurface9> Dx9App::RenderTarget(D3DFORMAT format, UINT width, UINT height,
                                            D3DMULTISAMPLE_TYPE samples) {
  Com<IDirect3DSurface9> surface;
  device_->CreateRenderTarget(width, height, format, samples, 0, FALSE, &surface, nullptr);
  return surface;
}

Com<IDirect3DSurface9> Dx9App::TextureLevel(D3DFORMAT format, UINT width, UINT height, UINT level,
                                            DWORD usage) {
  Com<IDirect3DTexture9> texture;
  Com<IDirect3DSurface9> surface;
  if (SUCCEEDED(device_->CreateTexture(width, height, level + 1, usage, format, D3DPOOL_DEFAULT,
                                       &texture, nullptr)))
    texture->GetSurfaceLevel(level, &surface);
  return surface;
}

void Dx9App::Write(IDirect3DSurface9* surface, const Bytes& bytes, size_t row_bytes, size_t rows) {
  D3DLOCKED_RECT locked;
  ASSERT_EQ(surface->LockRect(&locked, nullptr, 0), D3D_OK);
  for (size_t row = 0; row < rows; ++row) {
    std::memcpy(static_cast<uint8_t*>(locked.pBits) + row * static_cast<size_t>(locked.Pitch),
                &bytes[row * row_bytes], row_bytes);
  }
  surface->UnlockRect();
}

Bytes Dx9App::Read(IDirect3DSurface9* surface, size_t row_bytes, size_t rows) {
  Bytes bytes(row_bytes * rows);
  D3DLOCKED_RECT locked;
  const HRESULT result = surface->LockRect(&locked, nullptr, D3DLOCK_READONLY);
  EXPECT_EQ(result, D3D_OK);
  if (FAILED(result)) return bytes;
  for (size_t row = 0; row < rows; ++row) {
    std::memcpy(&bytes[row * row_bytes],
                static_cast<uint8_t*>(locked.pBits) + row * static_cast<size_t>(locked.Pitch),
                row_bytes);
  }
  surface->UnlockRect();
  return bytes;
}

void Dx9App::Upload(IDirect3DSurface9* surface, const Bytes& bytes, size_t row_bytes) {
  D3DSURFACE_DESC desc;
  ASSERT_EQ(surface->GetDesc(&desc), D3D_OK);
  const auto memory = Offscreen(desc.Format, desc.Width, desc.Height, D3DPOOL_SYSTEMMEM);
  Write(memory.Get(), bytes, row_bytes, desc.Height);
  ASSERT_EQ(device_->UpdateSurface(memory.Get(), nullptr, surface, nullptr), D3D_OK);
}

Bytes Dx9App::Download(IDirect3DSurface9* surface, size_t row_bytes) {
  D3DSURFACE_DESC desc;
  EXPECT_EQ(surface->GetDesc(&desc), D3D_OK);
  Com<IDirect3DSurface9> target = surface;
  if ((desc.Usage & D3DUSAGE_RENDERTARGET) == 0) {
    target = RenderTarget(desc.Format, desc.Width, desc.Height);
    EXPECT_EQ(device_->StretchRect(surface, nullptr, target.Get(), nullptr, D3DTEXF_NONE), D3D_OK);
  }
  const auto memory = Offscreen(desc.Format, desc.Width, desc.Height, D3DPOOL_SYSTEMMEM);
  EXPECT_EQ(device_->GetRenderTargetData(target.Get(), memory.Get()), D3D_OK);
  return Read(memory.Get(), row_bytes, desc.Height);
}

}  // namespace sluice::d3dtest
