// SPDX-License-Identifier: Apache-2.0
//
// The Windows side of daemon/allocator/memory_maker.h, with Direct3D behind its seam: sections, and
// where Direct3D can share, textures and buffers.
//
// Owner: the allocator's main. Single thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "daemon/allocator/memory_maker.h"
#include "platform_win/allocator/d3d11_sharing.h"

namespace sluice::allocator {

class WindowsMemoryMaker final : public MemoryMaker {
 public:
  using OpenD3d11 = std::function<absl::StatusOr<std::unique_ptr<D3d11Sharing>>()>;

  explicit WindowsMemoryMaker(OpenD3d11 open) : open_(std::move(open)) {}

  absl::StatusOr<MadeMemory> Make(wire::ResourceBacking backing, uint64_t size_bytes) override;
  absl::StatusOr<MadeMemory> MakeTexture(const wire::AllocateTexture& request) override;

 private:
  const OpenD3d11 open_;
  // Opened with the first need, and anew once the device is gone. A failure to open is kept:
  // loading drivers again and again helps nobody.
  std::optional<absl::StatusOr<std::unique_ptr<D3d11Sharing>>> d3d11_;
};

// The DXGI_FORMAT of an image that Direct3D has a texture for; 0 if it has none.
uint32_t DxgiFormatOf(uint32_t channel_order, uint32_t channel_type, uint32_t drm_fourcc);

}  // namespace sluice::allocator
