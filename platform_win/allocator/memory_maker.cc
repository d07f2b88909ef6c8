// SPDX-License-Identifier: Apache-2.0
#include "platform_win/allocator/memory_maker.h"

#include <CL/cl.h>

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/os/lent_memory.h"
#include "proto/status_macros.h"

namespace sluice::allocator {
namespace {

constexpr char kInstead[] = "; a section can be had: SLUICE_BACKING_MEMFD, or SLUICE_BACKING_ANY";

constexpr uint32_t Fourcc(const char (&name)[5]) {
  return static_cast<uint32_t>(name[0]) | static_cast<uint32_t>(name[1]) << 8 |
         static_cast<uint32_t>(name[2]) << 16 | static_cast<uint32_t>(name[3]) << 24;
}

absl::Status NotHere(const absl::Status& why) {
  return absl::Status(
      why.code(),
      absl::StrCat("Direct3D 11 shares nothing here: ", std::string(why.message()), kInstead));
}

os::UniqueFd Adopt(os::OwnedHandle handle) {
  return os::AddDescriptor(
      std::make_shared<os::HandleObject>(os::HandleKind::kGraphics, std::move(handle)));
}

}  // namespace

uint32_t DxgiFormatOf(uint32_t channel_order, uint32_t channel_type, uint32_t drm_fourcc) {
  struct Row {
    uint32_t order;
    uint32_t type;
    uint32_t format;
  };
  static constexpr Row kRows[] = {
#define DXGI_ROW(name, value, order, type) {CL_##order, CL_##type, value},
#include "proto/dxgi_formats.inc"
  };
  for (const Row& row : kRows) {
    if (channel_order != 0 && row.order == channel_order && row.type == channel_type) {
      return row.format;
    }
  }
  switch (drm_fourcc) {
    case Fourcc("XR24"):
      return 88;  // B8G8R8X8_UNORM
    case Fourcc("AB30"):
      return 24;  // R10G10B10A2_UNORM
    case Fourcc("NV12"):
      return 103;
    case Fourcc("P010"):
      return 104;
    default:
      return 0;
  }
}

std::unique_ptr<MemoryMaker> MemoryMaker::Create() {
  return std::make_unique<WindowsMemoryMaker>(&D3d11Sharing::Create);
}

absl::StatusOr<MadeMemory> WindowsMemoryMaker::Make(wire::ResourceBacking backing,
                                                    uint64_t size_bytes) {
  switch (backing) {
    case wire::ResourceBacking::kMemfd: {
      MadeMemory memory;
      ASSIGN_OR_RETURN(os::UniqueFd section, os::CreateLentMemory("sluice-resource", size_bytes));
      memory.fds.push_back(std::move(section));
      memory.allocation_bytes = size_bytes;
      return memory;
    }
    case wire::ResourceBacking::kDmaBuf:
      return absl::UnimplementedError(absl::StrCat("Windows has no dma-bufs", kInstead));
    case wire::ResourceBacking::kVulkan:
      return absl::UnimplementedError(
          absl::StrCat("the daemon makes no Vulkan memory on Windows", kInstead));
    case wire::ResourceBacking::kGralloc:
      return absl::UnimplementedError(absl::StrCat("Windows has no gralloc handles", kInstead));
    case wire::ResourceBacking::kAny:
    case wire::ResourceBacking::kImported:
    case wire::ResourceBacking::kD3d11:  // MakeTexture.
      break;
  }
  return absl::UnimplementedError(
      absl::StrCat("there is no backing ", static_cast<uint32_t>(backing)));
}

absl::StatusOr<MadeMemory> WindowsMemoryMaker::MakeTexture(const wire::AllocateTexture& request) {
  D3d11Shape shape;
  shape.size_bytes = request.size_bytes;
  if (request.width != 0) {
    if (request.depth > 1) {
      return absl::InvalidArgumentError("Direct3D shares no textures with a depth");
    }
    shape.dxgi_format =
        DxgiFormatOf(request.channel_order, request.channel_type, request.drm_fourcc);
    if (shape.dxgi_format == 0) {
      return absl::InvalidArgumentError("Direct3D has no textures of this format");
    }
    shape.width = request.width;
    shape.height = request.height;
    shape.array_layers = request.array_layers;
  }
  if (!d3d11_.has_value()) d3d11_ = open_();
  if (!d3d11_->ok()) return NotHere(d3d11_->status());
  absl::StatusOr<D3d11Shared> shared = (**d3d11_)->Make(shape);
  if (absl::IsUnimplemented(shared.status())) return NotHere(shared.status());
  if (absl::IsUnavailable(shared.status())) d3d11_.reset();
  if (!shared.ok()) return shared.status();
  MadeMemory memory;
  memory.fds.push_back(Adopt(std::move(shared->resource)));
  memory.fds.push_back(Adopt(std::move(shared->fence)));
  memory.allocation_bytes = request.size_bytes;
  std::memcpy(memory.device_uuid.data(), shared->adapter_luid.data(), shared->adapter_luid.size());
  return memory;
}

}  // namespace sluice::allocator
