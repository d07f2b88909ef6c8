// SPDX-License-Identifier: Apache-2.0
//
// The seam to Direct3D 11's sharing: textures and buffers that other processes open by NT handle,
// each with a fence. Wine has none of it (E_NOTIMPL, E_NOINTERFACE), so that the code behind Create
// has only been compiled there; its callers are tested with a stand-in.
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
  uint64_t size_bytes = 0;   // Of a buffer; not used for a texture.
  uint32_t dxgi_format = 0;  // 0: a buffer, for which the fields below are not used.
  uint32_t width = 0;
  uint32_t height = 0;
  uint32_t array_layers = 1;
};

// The layout of one layer's first contents, which Direct3D reads. The client chooses only format
// and extents. All planes have the pitch of the first.
struct D3d11Layer {
  uint32_t row_pitch = 0;
  uint64_t bytes = 0;
};
// kInvalidArgument: a format that DxgiFormatOf does not give, or extents beyond any texture.
absl::StatusOr<D3d11Layer> LayerOf(const D3d11Shape& shape);

struct D3d11Shared {
  os::OwnedHandle resource;  // For OpenSharedResource1; zero-filled, and no device works on it.
  os::OwnedHandle fence;     // For ID3D11Device5::OpenSharedFence; its value is 0.
  std::array<uint8_t, 8> adapter_luid = {};
};

class D3d11Sharing {
 public:
  // kUnimplemented: this system's Direct3D cannot share; the message says what it lacks.
  static absl::StatusOr<std::unique_ptr<D3d11Sharing>> Create();
  // On an existing device, which a test may have made up.
  static absl::StatusOr<std::unique_ptr<D3d11Sharing>> CreateOn(ID3D11Device* device);
  virtual ~D3d11Sharing() = default;

  // kUnavailable: the device is gone, or hangs; make another one for the next call.
  virtual absl::StatusOr<D3d11Shared> Make(const D3d11Shape& shape) = 0;
};

}  // namespace sluice::allocator
