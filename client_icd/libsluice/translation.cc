// SPDX-License-Identifier: Apache-2.0
#include "client_icd/libsluice/translation.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/os/native_handle.h"
#include "proto/status_macros.h"

namespace sluice::client {
namespace {

// One set of numbers in the header and in the messages.
static_assert(std::is_same_v<sluice_native_handle, os::NativeHandle>);
static_assert(static_cast<int>(SLUICE_READ) == v1::RESOURCE_ACCESS_READ);
static_assert(static_cast<int>(SLUICE_WRITE) == v1::RESOURCE_ACCESS_WRITE);
static_assert(static_cast<int>(SLUICE_BACKING_ANY) == v1::RESOURCE_BACKING_ANY);
static_assert(static_cast<int>(SLUICE_BACKING_MEMFD) == v1::RESOURCE_BACKING_MEMFD);
static_assert(static_cast<int>(SLUICE_BACKING_DMABUF) == v1::RESOURCE_BACKING_DMABUF);
static_assert(static_cast<int>(SLUICE_BACKING_VULKAN) == v1::RESOURCE_BACKING_VULKAN);
static_assert(static_cast<int>(SLUICE_BACKING_GRALLOC) == v1::RESOURCE_BACKING_GRALLOC);
static_assert(static_cast<int>(SLUICE_BACKING_IMPORTED) == v1::RESOURCE_BACKING_IMPORTED);
static_assert(static_cast<int>(SLUICE_BACKING_D3D11) == v1::RESOURCE_BACKING_D3D11);

// There is one version of each structure so far: exactly its size, or a larger one of a later
// version, of which the first part is ours.
template <typename Struct>
absl::Status CheckSize(const Struct& given) {
  if (given.struct_size >= sizeof(Struct)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("struct_size is ", given.struct_size, ", it must be at least ", sizeof(Struct)));
}

// The field of an image's that a buffer's shape has; null if none.
const char* ImageFieldOf(const sluice_shape& shape) {
  if (shape.channel_type != 0) return "channel_type";
  if (shape.plane_count != 0) return "plane_count";
  if (shape.depth != 0) return "depth";
  if (shape.array_layers != 0) return "array_layers";
  for (const sluice_plane& plane : shape.planes) {
    if (plane.offset != 0 || plane.row_pitch != 0 || plane.slice_pitch != 0) return "planes";
  }
  return nullptr;
}

absl::Status FillShape(const sluice_shape& shape, v1::ResourceShape* message) {
  message->set_size_bytes(shape.size_bytes);
  if (shape.plane_count > SLUICE_MAX_PLANES) {
    return absl::InvalidArgumentError(
        absl::StrCat(shape.plane_count, " planes, at most ", SLUICE_MAX_PLANES, " are possible"));
  }
  if (shape.width == 0 && shape.height == 0 && shape.drm_fourcc == 0 && shape.channel_order == 0) {
    const char* field = ImageFieldOf(shape);
    if (field == nullptr) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        field, " is not 0, but the shape is a buffer's: it has neither a format nor an extent"));
  }
  v1::ImageShape* image = message->mutable_image();
  image->set_channel_order(shape.channel_order);
  image->set_channel_type(shape.channel_type);
  image->set_drm_fourcc(shape.drm_fourcc);
  image->set_width(shape.width);
  image->set_height(shape.height);
  image->set_depth(shape.depth);
  image->set_array_layers(shape.array_layers);
  for (uint32_t i = 0; i < shape.plane_count; ++i) {
    v1::ResourcePlane* plane = image->add_planes();
    plane->set_offset(shape.planes[i].offset);
    plane->set_row_pitch(shape.planes[i].row_pitch);
    plane->set_slice_pitch(shape.planes[i].slice_pitch);
  }
  return absl::OkStatus();
}

sluice_shape FromShape(const v1::ResourceShape& message) {
  sluice_shape shape = {};
  shape.size_bytes = message.size_bytes();
  if (!message.has_image()) return shape;
  const v1::ImageShape& image = message.image();
  shape.channel_order = image.channel_order();
  shape.channel_type = image.channel_type();
  shape.drm_fourcc = image.drm_fourcc();
  shape.width = image.width();
  shape.height = image.height();
  shape.depth = image.depth();
  shape.array_layers = image.array_layers();
  shape.plane_count = static_cast<uint32_t>(std::min<int>(image.planes_size(), SLUICE_MAX_PLANES));
  for (uint32_t i = 0; i < shape.plane_count; ++i) {
    const v1::ResourcePlane& plane = image.planes(static_cast<int>(i));
    shape.planes[i] = {plane.offset(), plane.row_pitch(), plane.slice_pitch()};
  }
  return shape;
}

// RFC 3629: no longer form than needed, no surrogates, nothing above U+10FFFF.
bool IsUtf8(std::string_view text) {
  size_t i = 0;
  while (i < text.size()) {
    const auto first = static_cast<uint8_t>(text[i]);
    const size_t more = first < 0x80 ? 0 : first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
    if ((first >= 0x80 && first < 0xc2) || first > 0xf4 || text.size() - i <= more) return false;
    uint32_t code = more == 0 ? first : first & (0x3fu >> more);
    for (size_t k = 1; k <= more; ++k) {
      const auto next = static_cast<uint8_t>(text[i + k]);
      if ((next & 0xc0) != 0x80) return false;
      code = code << 6 | (next & 0x3f);
    }
    constexpr uint32_t kLeast[] = {0, 0x80, 0x800, 0x10000};
    if (code < kLeast[more] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return false;
    i += more + 1;
  }
  return true;
}

// The most of it that has room, in whole characters.
std::string_view CutUtf8(std::string_view text, size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<uint8_t>(text[most]) & 0xc0) == 0x80) --most;
  return text.substr(0, most);
}

template <typename Request>
absl::StatusOr<Request> ToRequest(const sluice_create_info& info) {
  RETURN_IF_ERROR(CheckSize(info));
  if ((info.flags & ~SLUICE_TRUST_READERS) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("unknown flags 0x", absl::Hex(info.flags)));
  }
  Request request;
  RETURN_IF_ERROR(FillShape(info.shape, request.mutable_shape()));
  request.set_trust_readers((info.flags & SLUICE_TRUST_READERS) != 0);
  request.set_linger_ms(info.linger_ms);
  if (info.label == nullptr) return request;
  if (!IsUtf8(info.label)) return absl::InvalidArgumentError("the label is not UTF-8");
  request.set_label(info.label);
  return request;
}

}  // namespace

absl::StatusOr<v1::CreateResourceRequest> ToCreateRequest(const sluice_create_info& info) {
  auto request = ToRequest<v1::CreateResourceRequest>(info);
  if (request.ok()) request->set_backing(static_cast<v1::ResourceBacking>(info.backing));
  return request;
}

absl::StatusOr<v1::ImportResourceRequest> ToImportRequest(const sluice_create_info& info) {
  return ToRequest<v1::ImportResourceRequest>(info);
}

v1::ResourceAccess ToAccess(sluice_access access) {
  return static_cast<v1::ResourceAccess>(access);  // The daemon refuses what is neither.
}

sluice_state FromState(const v1::ResourceState& message) {
  sluice_state state = {};
  state.generation = message.generation();
  state.readers = message.readers();
  state.waiting = message.waiting();
  state.writer = message.writer() ? 1 : 0;
  state.indeterminate = message.indeterminate() ? 1 : 0;
  state.destroyed = message.destroyed() ? 1 : 0;
  return state;
}

absl::Status FromDescription(const v1::ResourceDescription& message,
                             sluice_description* description) {
  RETURN_IF_ERROR(CheckSize(*description));
  description->backing = message.backing();
  description->resource_id = message.resource_id();
  description->shape = FromShape(message.shape());
  description->state = FromState(message.state());
  const std::string_view label = CutUtf8(message.label(), sizeof(description->label) - 1);
  std::memset(description->label, 0, sizeof(description->label));
  std::memcpy(description->label, label.data(), label.size());
  return absl::OkStatus();
}

absl::Status ClearHandle(sluice_handle* handle) {
  RETURN_IF_ERROR(CheckSize(*handle));
  const uint32_t size = handle->struct_size;
  *handle = {};
  handle->struct_size = size;
  std::fill(std::begin(handle->fds), std::end(handle->fds), os::kNoNativeHandle);
  return absl::OkStatus();
}

void GiveHandle(ExportedHandle exported, sluice_handle* handle) {
  const wire::ResourceHandle& message = exported.message;
  handle->backing = message.backing;
  handle->fd_count = static_cast<uint32_t>(exported.fds.size());
  for (size_t i = 0; i < exported.fds.size(); ++i) {
    handle->fds[i] = os::ToNative(std::move(exported.fds[i]));
  }
  handle->int_count = message.int_count;
  std::copy(std::begin(message.ints), std::end(message.ints), handle->ints);
  handle->size_bytes = message.size_bytes;
  handle->allocation_bytes = message.allocation_bytes;
  std::memcpy(handle->device_uuid, message.device_uuid, sizeof(handle->device_uuid));
  handle->writable = message.writable;
}

}  // namespace sluice::client
