// SPDX-License-Identifier: Apache-2.0
#include "proto/codec.h"

#include "absl/strings/str_cat.h"

namespace sluice::wire {

void EncodeNdRange(cl_uint work_dim, const size_t* global, const size_t* local,
                   const size_t* offset, pb::NdRange* out) {
  for (cl_uint i = 0; i < work_dim; ++i) {
    out->add_global(global == nullptr ? 0 : global[i]);
    if (local != nullptr) out->add_local(local[i]);
    if (offset != nullptr) out->add_offset(offset[i]);
  }
}

absl::StatusOr<NdRange> DecodeNdRange(const pb::NdRange& in) {
  const int dims = in.global_size();
  if (dims < 1 || dims > 3 || (in.local_size() != 0 && in.local_size() != dims) ||
      (in.offset_size() != 0 && in.offset_size() != dims)) {
    return absl::InvalidArgumentError(absl::StrCat("work sizes of ", dims, ", ", in.local_size(),
                                                   " and ", in.offset_size(), " dimensions"));
  }
  NdRange out;
  out.work_dim = static_cast<cl_uint>(dims);
  out.has_local = in.local_size() != 0;
  out.has_offset = in.offset_size() != 0;
  for (int i = 0; i < dims; ++i) {
    out.global[i] = in.global(i);
    if (out.has_local) out.local[i] = in.local(i);
    if (out.has_offset) out.offset[i] = in.offset(i);
  }
  return out;
}

void EncodeSize3(const size_t* xyz, pb::Size3* out) {
  out->set_x(xyz[0]);
  out->set_y(xyz[1]);
  out->set_z(xyz[2]);
}

Size3 DecodeSize3(const pb::Size3& in) {
  return {{static_cast<size_t>(in.x()), static_cast<size_t>(in.y()), static_cast<size_t>(in.z())}};
}

void EncodeImageFormat(const cl_image_format& format, pb::ImageFormat* out) {
  out->set_channel_order(format.image_channel_order);
  out->set_channel_data_type(format.image_channel_data_type);
}

cl_image_format DecodeImageFormat(const pb::ImageFormat& in) {
  return {in.channel_order(), in.channel_data_type()};
}

void EncodeImageDesc(const cl_image_desc& desc, uint64_t parent_id, pb::ImageDesc* out) {
  out->set_image_type(desc.image_type);
  out->set_width(desc.image_width);
  out->set_height(desc.image_height);
  out->set_depth(desc.image_depth);
  out->set_array_size(desc.image_array_size);
  // With a parent buffer the pitch is the layout of device memory; without one it is the host's,
  // and stays there.
  if (parent_id != 0) out->set_row_pitch(desc.image_row_pitch);
  out->set_num_mip_levels(desc.num_mip_levels);
  out->set_num_samples(desc.num_samples);
  out->set_parent_id(parent_id);
}

cl_image_desc DecodeImageDesc(const pb::ImageDesc& in) {
  cl_image_desc desc = {};
  desc.image_type = in.image_type();
  desc.image_width = in.width();
  desc.image_height = in.height();
  desc.image_depth = in.depth();
  desc.image_array_size = in.array_size();
  desc.image_row_pitch = in.parent_id() != 0 ? in.row_pitch() : 0;
  desc.num_mip_levels = in.num_mip_levels();
  desc.num_samples = in.num_samples();
  return desc;
}

}  // namespace sluice::wire
