// SPDX-License-Identifier: Apache-2.0
// A Direct3D 10 or 11 application, and the OpenCL extension it shares by: Khr10, Khr11 and Nv11,
// for typed tests. Owner: the test. Thread: the test's.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "tests/sharing/d3d/d3d_extensions.h"
#include "tests/sharing/d3d/sharing_fixture.h"

namespace sluice::d3dtest {

// How many references the object has.
inline ULONG CountOf(IUnknown* object) {
  object->AddRef();
  return object->Release();
}

struct DxgiFormat {
  DXGI_FORMAT native;
  cl_image_format cl;
  const char* name;
};
// Table 9.9.3 (Direct3D 10) and its twin of Direct3D 11.
const std::vector<DxgiFormat>& AllDxgiFormats();

// Properties of a texture that are not plain.
template <typename E>
struct TextureOptions {
  UINT levels = 1;
  UINT layers = 1;
  typename E::Usage usage = E::kDefault;
  UINT bind = E::kShaderResource;
  UINT cpu_access = 0;
};

// A device and what is done with it. E is an extension.
template <typename E>
class D3dApp {
 public:
  explicit D3dApp(UINT flags = 0) : device_(E::NewDevice(flags)) {
    if (device_) commands_ = E::CommandsOf(device_.Get());
  }

  bool ok() const { return device_ != nullptr; }
  typename E::Device* device() const { return device_.Get(); }
  typename E::Commands* commands() const { return commands_.Get(); }
  // References of ours apart from the application's one.
  void KeepDeviceOnly() { commands_.Reset(); }

  // Null if Direct3D does not make it.
  Com<typename E::Buffer> Buffer(size_t bytes, const void* data,
                                 typename E::Usage usage = E::kDefault, UINT cpu_access = 0) {
    typename E::BufferDesc desc = {};
    desc.ByteWidth = static_cast<UINT>(bytes);
    desc.Usage = usage;
    desc.BindFlags = usage == E::kStaging ? 0 : E::kVertexBuffer;
    desc.CPUAccessFlags = cpu_access;
    const typename E::InitialData initial = {data, 0, 0};
    Com<typename E::Buffer> buffer;
    device_->CreateBuffer(&desc, data == nullptr ? nullptr : &initial, &buffer);
    return buffer;
  }
  Com<typename E::Texture2d> Texture2d(DXGI_FORMAT format, UINT width, UINT height,
                                       const TextureOptions<E>& options = {},
                                       const typename E::InitialData* initial = nullptr) {
    typename E::Texture2dDesc desc = {};
    desc.Width = width;
    desc.Height = height;
    desc.MipLevels = options.levels;
    desc.ArraySize = options.layers;
    desc.Format = format;
    desc.SampleDesc.Count = 1;
    desc.Usage = options.usage;
    desc.BindFlags = options.bind;
    desc.CPUAccessFlags = options.cpu_access;
    Com<typename E::Texture2d> texture;
    device_->CreateTexture2D(&desc, initial, &texture);
    return texture;
  }
  Com<typename E::Texture3d> Texture3d(DXGI_FORMAT format, UINT width, UINT height, UINT depth,
                                       UINT levels = 1) {
    typename E::Texture3dDesc desc = {};
    desc.Width = width;
    desc.Height = height;
    desc.Depth = depth;
    desc.MipLevels = levels;
    desc.Format = format;
    desc.BindFlags = E::kShaderResource;
    Com<typename E::Texture3d> texture;
    device_->CreateTexture3D(&desc, nullptr, &texture);
    return texture;
  }

  // Tightly packed bytes to a subresource, and from one through a staging resource.
  void Write(typename E::Resource* resource, UINT subresource, const Bytes& bytes, size_t width,
             size_t height, size_t element_bytes) {
    const UINT row = static_cast<UINT>(width * element_bytes);
    commands_->UpdateSubresource(resource, subresource, nullptr, bytes.data(), row,
                                 static_cast<UINT>(row * height));
  }
  Bytes Read(typename E::Buffer* buffer) {
    typename E::BufferDesc desc;
    buffer->GetDesc(&desc);
    const auto staging = Buffer(desc.ByteWidth, nullptr, E::kStaging, E::kCpuRead);
    commands_->CopySubresourceRegion(staging.Get(), 0, 0, 0, 0, buffer, 0, nullptr);
    return Take(staging.Get(), desc.ByteWidth, 1, 1);
  }
  Bytes Read(typename E::Texture2d* texture, UINT subresource, const Size& size,
             size_t element_bytes) {
    typename E::Texture2dDesc desc;
    texture->GetDesc(&desc);
    const auto staging =
        Texture2d(desc.Format, static_cast<UINT>(size.width), static_cast<UINT>(size.height),
                  {1, 1, E::kStaging, 0, E::kCpuRead});
    commands_->CopySubresourceRegion(staging.Get(), 0, 0, 0, 0, texture, subresource, nullptr);
    return Take(staging.Get(), size.width * element_bytes, size.height, 1);
  }
  Bytes Read(typename E::Texture3d* texture, UINT subresource, const Size& size,
             size_t element_bytes) {
    typename E::Texture3dDesc desc;
    texture->GetDesc(&desc);
    desc.Width = static_cast<UINT>(size.width);
    desc.Height = static_cast<UINT>(size.height);
    desc.Depth = static_cast<UINT>(size.depth);
    desc.MipLevels = 1;
    desc.Usage = E::kStaging;
    desc.BindFlags = 0;
    desc.CPUAccessFlags = E::kCpuRead;
    Com<typename E::Texture3d> staging;
    EXPECT_EQ(device_->CreateTexture3D(&desc, nullptr, &staging), S_OK);
    commands_->CopySubresourceRegion(staging.Get(), 0, 0, 0, 0, texture, subresource, nullptr);
    return Take(staging.Get(), size.width * element_bytes, size.height, size.depth);
  }

 private:
  template <typename Staging>
  Bytes Take(Staging* staging, size_t row_bytes, size_t rows, size_t slices) {
    const Mapped mapped = E::Map(commands_.Get(), staging);
    Bytes out(row_bytes * rows * slices);
    if (mapped.data == nullptr) {
      ADD_FAILURE() << "a staging resource cannot be mapped";
      return out;
    }
    const auto* from = static_cast<const uint8_t*>(mapped.data);
    for (size_t slice = 0; slice < slices; ++slice) {
      for (size_t row = 0; row < rows; ++row) {
        std::memcpy(&out[(slice * rows + row) * row_bytes],
                    from + slice * mapped.slice_pitch + row * mapped.row_pitch, row_bytes);
      }
    }
    E::Unmap(commands_.Get(), staging);
    return out;
  }

  Com<typename E::Device> device_;
  Com<typename E::Commands> commands_;
};

}  // namespace sluice::d3dtest
