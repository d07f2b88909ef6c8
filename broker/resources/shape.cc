// SPDX-License-Identifier: Apache-2.0
#include "broker/resources/shape.h"

#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <CL/cl_gl.h>  // CL_DEPTH_STENCIL, CL_UNORM_INT24; older headers have them in cl.h.

#include <algorithm>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "proto/image_format.h"
#include "proto/status_macros.h"

namespace sluice::broker {
namespace {

// Bounds that keep every sum below 2^63, whatever the caller writes.
constexpr uint64_t kMaxPitch = uint64_t{1} << 40;

constexpr uint32_t Fourcc(const char (&name)[5]) {
  return static_cast<uint32_t>(name[0]) | static_cast<uint32_t>(name[1]) << 8 |
         static_cast<uint32_t>(name[2]) << 16 | static_cast<uint32_t>(name[3]) << 24;
}

// One plane of a format: its bytes per sample, and how many pixels share a sample each way.
struct PlaneFormat {
  uint32_t bytes = 0;
  uint32_t subsample_x = 1;
  uint32_t subsample_y = 1;
};

struct Format {
  std::vector<PlaneFormat> planes;
};

struct FourccRow {
  uint32_t fourcc;
  uint32_t channel_order;  // 0: OpenCL has no name for it.
  uint32_t channel_type;
  PlaneFormat planes[3];
};

// drm_fourcc.h names packed formats from the highest bits of a little-endian word down, OpenCL by
// the order in memory: ARGB8888 ('AR24') is CL_BGRA.
constexpr FourccRow kFourccs[] = {
    {Fourcc("R8  "), CL_R, CL_UNORM_INT8, {{1}}},
    {Fourcc("R16 "), CL_R, CL_UNORM_INT16, {{2}}},
    {Fourcc("GR88"), CL_RG, CL_UNORM_INT8, {{2}}},
    {Fourcc("GR32"), CL_RG, CL_UNORM_INT16, {{4}}},
    {Fourcc("RG16"), CL_RGB, CL_UNORM_SHORT_565, {{2}}},
    {Fourcc("AB24"), CL_RGBA, CL_UNORM_INT8, {{4}}},
    {Fourcc("AR24"), CL_BGRA, CL_UNORM_INT8, {{4}}},
    {Fourcc("XB24"), 0, 0, {{4}}},
    {Fourcc("XR24"), 0, 0, {{4}}},
    {Fourcc("AR30"), 0, 0, {{4}}},
    {Fourcc("AB30"), 0, 0, {{4}}},
    {Fourcc("AB48"), CL_RGBA, CL_UNORM_INT16, {{8}}},
    {Fourcc("AB4H"), CL_RGBA, CL_HALF_FLOAT, {{8}}},
    {Fourcc("NV12"), 0, 0, {{1}, {2, 2, 2}}},
    {Fourcc("NV21"), 0, 0, {{1}, {2, 2, 2}}},
    {Fourcc("P010"), 0, 0, {{2}, {4, 2, 2}}},
    {Fourcc("YU12"), 0, 0, {{1}, {1, 2, 2}, {1, 2, 2}}},
    {Fourcc("YV12"), 0, 0, {{1}, {1, 2, 2}, {1, 2, 2}}},
};

// Bytes of one element; 0 if order and type do not go together. OpenCL 3.0 section 5.3.1.1: CL_RGB
// and CL_RGBx go with the packed types of three channels alone.
uint32_t ElementBytes(uint32_t order, uint32_t type) {
  const bool is_rgb = order == CL_RGB || order == CL_RGBx;
  const bool is_packed =
      type == CL_UNORM_SHORT_565 || type == CL_UNORM_SHORT_555 || type == CL_UNORM_INT_101010;
  return is_rgb == is_packed ? static_cast<uint32_t>(wire::ElementBytes({order, type})) : 0;
}

absl::Status Refuse(const std::string& why) { return absl::InvalidArgumentError(why); }

// Completes the names of the format and says what its planes are.
absl::StatusOr<Format> ResolveFormat(ResourceImage* image) {
  const bool by_cl = image->channel_order != 0 || image->channel_type != 0;
  if (image->drm_fourcc == 0) {
    if (!by_cl) return Refuse("the image has neither an OpenCL format nor a DRM fourcc");
    const uint32_t bytes = ElementBytes(image->channel_order, image->channel_type);
    if (bytes == 0) {
      return Refuse(absl::StrCat("channel order 0x", absl::Hex(image->channel_order),
                                 " and type 0x", absl::Hex(image->channel_type),
                                 " are no OpenCL image format"));
    }
    for (const FourccRow& row : kFourccs) {
      if (row.channel_order == image->channel_order && row.channel_type == image->channel_type) {
        image->drm_fourcc = row.fourcc;
      }
    }
    return Format{{{bytes}}};
  }
  for (const FourccRow& row : kFourccs) {
    if (row.fourcc != image->drm_fourcc) continue;
    if (by_cl &&
        (row.channel_order != image->channel_order || row.channel_type != image->channel_type)) {
      return Refuse("the OpenCL format and the DRM fourcc are different formats");
    }
    image->channel_order = row.channel_order;
    image->channel_type = row.channel_type;
    Format format;
    for (const PlaneFormat& plane : row.planes) {
      if (plane.bytes != 0) format.planes.push_back(plane);
    }
    return format;
  }
  return Refuse(absl::StrCat("DRM fourcc 0x", absl::Hex(image->drm_fourcc), " is not known here"));
}

absl::Status CheckExtent(ResourceImage* image) {
  image->depth = std::max<uint64_t>(image->depth, 1);
  image->array_layers = std::max<uint64_t>(image->array_layers, 1);
  for (const uint64_t extent : {image->width, image->height, image->depth, image->array_layers}) {
    if (extent < 1 || extent > kMaxImageExtent) {
      return Refuse(absl::StrCat("image extents are ", image->width, "x", image->height, "x",
                                 image->depth, ", ", image->array_layers,
                                 " layers; allowed are 1 to ", kMaxImageExtent));
    }
  }
  if (image->depth > 1 && image->array_layers > 1) {
    return Refuse("an image has either depth or array layers, not both");
  }
  return absl::OkStatus();
}

// Completes one plane; returns where it ends. `begin` is the first byte that is free.
absl::StatusOr<uint64_t> CompletePlane(const ResourceImage& image, const PlaneFormat& format,
                                       uint64_t begin, PlaneLayout* plane) {
  const uint64_t columns = (image.width + format.subsample_x - 1) / format.subsample_x;
  const uint64_t rows = (image.height + format.subsample_y - 1) / format.subsample_y;
  const uint64_t slices = std::max(image.depth, image.array_layers);
  const uint64_t row_bytes = columns * format.bytes;
  if (plane->offset == 0) plane->offset = begin;
  if (plane->row_pitch == 0) plane->row_pitch = row_bytes;
  const bool is_row = plane->row_pitch <= kMaxPitch;
  if (plane->slice_pitch == 0 && is_row) plane->slice_pitch = plane->row_pitch * rows;
  if (!is_row || plane->slice_pitch > kMaxResourceBytes || plane->offset > kMaxResourceBytes) {
    return Refuse("a plane's offset or pitch is beyond any memory");
  }
  if (plane->offset < begin) return Refuse("a plane begins inside the one before it");
  if (plane->row_pitch < row_bytes ||
      plane->slice_pitch < plane->row_pitch * (rows - 1) + row_bytes) {
    return Refuse(absl::StrCat("row pitch ", plane->row_pitch, " or slice pitch ",
                               plane->slice_pitch, " is too small for ", columns, "x", rows,
                               " samples of ", format.bytes, " bytes"));
  }
  // At most 2^46 + 2^46 * 2^16: no overflow.
  return plane->offset + plane->slice_pitch * slices;
}

absl::StatusOr<uint64_t> CompleteImage(ResourceImage* image) {
  RETURN_IF_ERROR(CheckExtent(image));
  ASSIGN_OR_RETURN(const Format format, ResolveFormat(image));
  if (format.planes.size() > 1 && std::max(image->depth, image->array_layers) > 1) {
    return Refuse("an image of several planes has one slice");
  }
  if (!image->planes.empty() && image->planes.size() != format.planes.size()) {
    return Refuse(absl::StrCat("the image has ", image->planes.size(), " planes, its format has ",
                               format.planes.size()));
  }
  image->planes.resize(format.planes.size());
  uint64_t end = 0;
  for (size_t i = 0; i < format.planes.size(); ++i) {
    ASSIGN_OR_RETURN(end, CompletePlane(*image, format.planes[i], end, &image->planes[i]));
  }
  return end;
}

}  // namespace

absl::Status CompleteShape(ResourceShape* shape_untrusted) {
  ResourceShape& shape = *shape_untrusted;
  if (shape.image.has_value()) {
    ASSIGN_OR_RETURN(const uint64_t needed, CompleteImage(&*shape.image));
    if (shape.size_bytes == 0) shape.size_bytes = needed;
    if (shape.size_bytes < needed) {
      return Refuse(absl::StrCat("the image needs ", needed, " bytes, its size is given as ",
                                 shape.size_bytes));
    }
  }
  if (shape.size_bytes < 1 || shape.size_bytes > kMaxResourceBytes) {
    return Refuse(absl::StrCat("a size of ", shape.size_bytes, " bytes; allowed are 1 to ",
                               kMaxResourceBytes));
  }
  return absl::OkStatus();
}

}  // namespace sluice::broker
