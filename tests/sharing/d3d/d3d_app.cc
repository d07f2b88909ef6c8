// SPDX-License-Identifier: Apache-2.0
#include "tests/sharing/d3d/d3d_app.h"

namespace sluice::d3dtest {

Com<ID3D10Device> Direct3d10::NewDevice(UINT flags) {
  Com<ID3D10Device> device;
  const HRESULT result = D3D10CreateDevice(nullptr, D3D10_DRIVER_TYPE_HARDWARE, nullptr, flags,
                                           D3D10_SDK_VERSION, &device);
  EXPECT_EQ(result, S_OK);
  return device;
}

Mapped Direct3d10::Map(Commands*, Buffer* staging) {
  void* data = nullptr;
  staging->Map(D3D10_MAP_READ, 0, &data);
  return {data, 0, 0};
}
Mapped Direct3d10::Map(Commands*, Texture2d* staging) {
  D3D10_MAPPED_TEXTURE2D mapped = {};
  staging->Map(0, D3D10_MAP_READ, 0, &mapped);
  return {mapped.pData, mapped.RowPitch, 0};
}
Mapped Direct3d10::Map(Commands*, Texture3d* staging) {
  D3D10_MAPPED_TEXTURE3D mapped = {};
  staging->Map(0, D3D10_MAP_READ, 0, &mapped);
  return {mapped.pData, mapped.RowPitch, mapped.DepthPitch};
}

Com<ID3D11Device> Direct3d11::NewDevice(UINT flags) {
  Com<ID3D11Device> device;
  const HRESULT result =
      D3D11CreateDevice(nullptr, D3D_DRIVER_TYPE_HARDWARE, nullptr, flags, nullptr, 0,
                        D3D11_SDK_VERSION, &device, nullptr, nullptr);
  EXPECT_EQ(result, S_OK);
  return device;
}

Com<ID3D11DeviceContext> Direct3d11::CommandsOf(Device* device) {
  Com<ID3D11DeviceContext> commands;
  device->GetImmediateContext(&commands);
  return commands;
}

Mapped Direct3d11::Map(Commands* commands, Resource* staging) {
  D3D11_MAPPED_SUBRESOURCE mapped = {};
  commands->Map(staging, 0, D3D11_MAP_READ, 0, &mapped);
  return {mapped.pData, mapped.RowPitch, mapped.DepthPitch};
}

#define ROW(name, order, type) \
  { DXGI_FORMAT_##name, {CL_##order, CL_##type}, #name }
const std::vector<DxgiFormat>& AllDxgiFormats() {
  static const std::vector<DxgiFormat> formats = {
      ROW(R32G32B32A32_FLOAT, RGBA, FLOAT),
      ROW(R32G32B32A32_UINT, RGBA, UNSIGNED_INT32),
      ROW(R32G32B32A32_SINT, RGBA, SIGNED_INT32),
      ROW(R16G16B16A16_FLOAT, RGBA, HALF_FLOAT),
      ROW(R16G16B16A16_UNORM, RGBA, UNORM_INT16),
      ROW(R16G16B16A16_UINT, RGBA, UNSIGNED_INT16),
      ROW(R16G16B16A16_SNORM, RGBA, SNORM_INT16),
      ROW(R16G16B16A16_SINT, RGBA, SIGNED_INT16),
      ROW(B8G8R8A8_UNORM, BGRA, UNORM_INT8),
      ROW(R8G8B8A8_UNORM, RGBA, UNORM_INT8),
      ROW(R8G8B8A8_UINT, RGBA, UNSIGNED_INT8),
      ROW(R8G8B8A8_SNORM, RGBA, SNORM_INT8),
      ROW(R8G8B8A8_SINT, RGBA, SIGNED_INT8),
      ROW(R32G32_FLOAT, RG, FLOAT),
      ROW(R32G32_UINT, RG, UNSIGNED_INT32),
      ROW(R32G32_SINT, RG, SIGNED_INT32),
      ROW(R16G16_FLOAT, RG, HALF_FLOAT),
      ROW(R16G16_UNORM, RG, UNORM_INT16),
      ROW(R16G16_UINT, RG, UNSIGNED_INT16),
      ROW(R16G16_SNORM, RG, SNORM_INT16),
      ROW(R16G16_SINT, RG, SIGNED_INT16),
      ROW(R8G8_UNORM, RG, UNORM_INT8),
      ROW(R8G8_UINT, RG, UNSIGNED_INT8),
      ROW(R8G8_SNORM, RG, SNORM_INT8),
      ROW(R8G8_SINT, RG, SIGNED_INT8),
      ROW(R32_FLOAT, R, FLOAT),
      ROW(R32_UINT, R, UNSIGNED_INT32),
      ROW(R32_SINT, R, SIGNED_INT32),
      ROW(R16_FLOAT, R, HALF_FLOAT),
      ROW(R16_UNORM, R, UNORM_INT16),
      ROW(R16_UINT, R, UNSIGNED_INT16),
      ROW(R16_SNORM, R, SNORM_INT16),
      ROW(R16_SINT, R, SIGNED_INT16),
      ROW(R8_UNORM, R, UNORM_INT8),
      ROW(R8_UINT, R, UNSIGNED_INT8),
      ROW(R8_SNORM, R, SNORM_INT8),
      ROW(R8_SINT, R, SIGNED_INT8),
  };
  return formats;
}
#undef ROW

}  // namespace sluice::d3dtest
