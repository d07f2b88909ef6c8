// SPDX-License-Identifier: Apache-2.0
#include "broker/resources/conversion.h"

#include <algorithm>
#include <limits>

namespace sluice::broker {
namespace {

// One set of numbers in the messages and behind them.
static_assert(static_cast<int>(wire::ResourceBacking::kAny) == v1::RESOURCE_BACKING_ANY);
static_assert(static_cast<int>(wire::ResourceBacking::kMemfd) == v1::RESOURCE_BACKING_MEMFD);
static_assert(static_cast<int>(wire::ResourceBacking::kDmaBuf) == v1::RESOURCE_BACKING_DMABUF);
static_assert(static_cast<int>(wire::ResourceBacking::kVulkan) == v1::RESOURCE_BACKING_VULKAN);
static_assert(static_cast<int>(wire::ResourceBacking::kGralloc) == v1::RESOURCE_BACKING_GRALLOC);
static_assert(static_cast<int>(wire::ResourceBacking::kImported) == v1::RESOURCE_BACKING_IMPORTED);
static_assert(static_cast<int>(wire::ResourceBacking::kD3d11) == v1::RESOURCE_BACKING_D3D11);

ResourceShape ReadShape(const v1::ResourceShape& message) {
  ResourceShape shape;
  shape.size_bytes = message.size_bytes();
  if (!message.has_image()) return shape;
  const v1::ImageShape& from = message.image();
  ResourceImage& image = shape.image.emplace();
  image.channel_order = from.channel_order();
  image.channel_type = from.channel_type();
  image.drm_fourcc = from.drm_fourcc();
  image.width = from.width();
  image.height = from.height();
  image.depth = from.depth();
  image.array_layers = from.array_layers();
  for (const v1::ResourcePlane& plane : from.planes()) {
    image.planes.push_back({plane.offset(), plane.row_pitch(), plane.slice_pitch()});
  }
  return shape;
}

void FillShape(const ResourceShape& shape, v1::ResourceShape* message) {
  message->set_size_bytes(shape.size_bytes);
  if (!shape.image.has_value()) return;
  const ResourceImage& image = *shape.image;
  v1::ImageShape* to = message->mutable_image();
  to->set_channel_order(image.channel_order);
  to->set_channel_type(image.channel_type);
  to->set_drm_fourcc(image.drm_fourcc);
  to->set_width(image.width);
  to->set_height(image.height);
  to->set_depth(image.depth);
  to->set_array_layers(image.array_layers);
  for (const PlaneLayout& plane : image.planes) {
    v1::ResourcePlane* entry = to->add_planes();
    entry->set_offset(plane.offset);
    entry->set_row_pitch(plane.row_pitch);
    entry->set_slice_pitch(plane.slice_pitch);
  }
}

template <typename Request>
ResourceOptions ReadOptions(const Request& request) {
  ResourceOptions options;
  options.label = request.label();
  options.trust_readers = request.trust_readers();
  options.linger_ms = static_cast<int64_t>(std::min<uint64_t>(
      request.linger_ms(), static_cast<uint64_t>(std::numeric_limits<int64_t>::max())));
  return options;
}

}  // namespace

CreateParameters ReadCreate(const v1::CreateResourceRequest& request) {
  CreateParameters parameters;
  parameters.shape = ReadShape(request.shape());
  parameters.backing = static_cast<wire::ResourceBacking>(request.backing());
  parameters.options = ReadOptions(request);
  return parameters;
}

CreateParameters ReadImport(const v1::ImportResourceRequest& request) {
  CreateParameters parameters;
  parameters.shape = ReadShape(request.shape());
  parameters.options = ReadOptions(request);
  return parameters;
}

absl::StatusOr<ResourceAccess> ReadAccess(v1::ResourceAccess access) {
  if (access == v1::RESOURCE_ACCESS_READ) return ResourceAccess::kRead;
  if (access == v1::RESOURCE_ACCESS_WRITE) return ResourceAccess::kWrite;
  return absl::InvalidArgumentError("the access is neither READ nor WRITE");
}

absl::StatusOr<ResourceTurns::Contents> ReadContents(const v1::ReleaseResourceRequest& request) {
  if (request.contents_indeterminate() && request.contents_untouched()) {
    return absl::InvalidArgumentError("contents are indeterminate or untouched, not both");
  }
  if (request.contents_indeterminate()) return ResourceTurns::Contents::kIndeterminate;
  if (request.contents_untouched()) return ResourceTurns::Contents::kUntouched;
  return ResourceTurns::Contents::kWritten;
}

void FillState(const ResourceStateView& state, v1::ResourceState* message) {
  message->set_generation(state.generation);
  message->set_indeterminate(state.indeterminate);
  message->set_destroyed(state.destroyed);
  message->set_readers(state.readers);
  message->set_writer(state.writer);
  message->set_waiting(state.waiting);
}

void FillGrant(const ResourceGrant& grant, v1::AcquireResourceReply* reply) {
  reply->set_indeterminate(grant.indeterminate);
  reply->set_generation(grant.generation);
}

void FillDescription(const ResourceView& view, const ResourceStateView& state,
                     v1::ResourceDescription* message) {
  message->set_resource_id(view.id);
  FillShape(*view.shape, message->mutable_shape());
  message->set_backing(static_cast<v1::ResourceBacking>(view.backing));
  message->set_label(view.options->label);
  message->set_descriptor_count(static_cast<uint32_t>(view.memory->fds.size()));
  FillState(state, message->mutable_state());
}

}  // namespace sluice::broker
