// SPDX-License-Identifier: Apache-2.0
//
// The seam to Direct3D 11's sharing: textures and buffers that other processes open by NT handle,
// each with a fence. Wine has none of it (E_NOTIMPL, E_NOINTERFACE), so that what is behind
// Create has only been compiled there; whoever is in front of it is tested with a stand-in.
//
// Owner: MemoryMaker. Single thread. Shapes come from clients: Direct3D may refuse them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "platform_win/handles/handle_table.h"

struct ID3D11Device;

namespace sluice::allocator {

struct D3d11Shape {
  uint64_t size_bytes = 0;   // Of a buffer; means nothing for a texture.
  uint32_t dxgi_format = 0;  // 0: a buffer, and nothing below counts.
  uint32_t width = 0;
  uint32_t height = 0;
  uint32_t array_layers = 1;
};

// The first contents of one layer, which Direct3D reads: nothing of it is the client's choice but
// format and extents. All planes have the pitch of the first.
struct D3d11Layer {
  uint32_t row_pitch = 0;
  uint64_t bytes = 0;
};
// kInvalidArgument: a format that DxgiFormatOf does not give, or extents beyond any texture.
absl::StatusOr<D3d11Layer> LayerOf(const D3d11Shape& shape);

struct D3d11Shared {
  os::OwnedHandle resource;  // For OpenSharedResource1; zero, and nobody works on it.
  os::OwnedHandle fence;     // For ID3D11Device5::OpenSharedFence; its value is 0.
  std::array<uint8_t, 8> adapter_luid = {};
};

class D3d11Sharing {
 public:
  // kUnimplemented: this system's Direct3D cannot share; the message says what it lacks.
  static absl::StatusOr<std::unique_ptr<D3d11Sharing>> Create();
  // On a device that is there already; a test's may be made up.
  static absl::StatusOr<std::unique_ptr<D3d11Sharing>> CreateOn(ID3D11Device* device);
  virtual ~D3d11Sharing() = default;

  // kUnavailable: the device is gone, or hangs; another is to be made for the next.
  virtual absl::StatusOr<D3d11Shared> Make(const D3d11Shape& shape) = 0;
};

}  // namespace sluice::allocator
