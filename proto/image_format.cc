// SPDX-License-Identifier: Apache-2.0
#include "proto/image_format.h"

#include <CL/cl_gl.h>  // CL_DEPTH_STENCIL, CL_UNORM_INT24; older headers have them in cl.h.

namespace sluice::wire {
namespace {

size_t Channels(cl_channel_order order) {
  switch (order) {
    case CL_R:
    case CL_A:
    case CL_INTENSITY:
    case CL_LUMINANCE:
    case CL_DEPTH:
      return 1;
    case CL_RG:
    case CL_RA:
    case CL_Rx:
      return 2;
    case CL_RGB:
    case CL_RGx:
    case CL_sRGB:
      return 3;
    case CL_RGBA:
    case CL_BGRA:
    case CL_ARGB:
    case CL_ABGR:
    case CL_RGBx:
    case CL_sRGBA:
    case CL_sBGRA:
    case CL_sRGBx:
      return 4;
    default:
      return 0;
  }
}

bool IsRgb(cl_channel_order order) { return order == CL_RGB || order == CL_RGBx; }

}  // namespace

size_t ElementBytes(const cl_image_format& format) {
  const cl_channel_order order = format.image_channel_order;
  if (order == CL_DEPTH_STENCIL) {
    if (format.image_channel_data_type == CL_UNORM_INT24) return 4;
    return format.image_channel_data_type == CL_FLOAT ? 8 : 0;
  }
  const size_t channels = Channels(order);
  switch (format.image_channel_data_type) {
    case CL_SNORM_INT8:
    case CL_UNORM_INT8:
    case CL_SIGNED_INT8:
    case CL_UNSIGNED_INT8:
      return channels;
    case CL_SNORM_INT16:
    case CL_UNORM_INT16:
    case CL_SIGNED_INT16:
    case CL_UNSIGNED_INT16:
    case CL_HALF_FLOAT:
      return channels * 2;
    case CL_SIGNED_INT32:
    case CL_UNSIGNED_INT32:
    case CL_FLOAT:
      return channels * 4;
    // The packed types hold a whole element and go with RGB only (the last with RGBA): OpenCL 3.0
    // section 5.3.1.1.
    case CL_UNORM_SHORT_565:
    case CL_UNORM_SHORT_555:
      return IsRgb(order) ? 2 : 0;
    case CL_UNORM_INT_101010:
      return IsRgb(order) ? 4 : 0;
    case CL_UNORM_INT_101010_2:
      return order == CL_RGBA ? 4 : 0;
    default:
      return 0;
  }
}

int ImageDimensions(cl_mem_object_type type) {
  switch (type) {
    case CL_MEM_OBJECT_IMAGE1D:
    case CL_MEM_OBJECT_IMAGE1D_BUFFER:
      return 1;
    case CL_MEM_OBJECT_IMAGE1D_ARRAY:
    case CL_MEM_OBJECT_IMAGE2D:
      return 2;
    case CL_MEM_OBJECT_IMAGE2D_ARRAY:
    case CL_MEM_OBJECT_IMAGE3D:
      return 3;
    default:
      return 0;
  }
}

ImageExtent ExtentOf(const cl_image_desc& desc) {
  ImageExtent extent = {{desc.image_width, 1, 1}};
  switch (desc.image_type) {
    case CL_MEM_OBJECT_IMAGE1D_ARRAY:
      extent.v[1] = desc.image_array_size;
      break;
    case CL_MEM_OBJECT_IMAGE2D:
      extent.v[1] = desc.image_height;
      break;
    case CL_MEM_OBJECT_IMAGE2D_ARRAY:
      extent.v[1] = desc.image_height;
      extent.v[2] = desc.image_array_size;
      break;
    case CL_MEM_OBJECT_IMAGE3D:
      extent.v[1] = desc.image_height;
      extent.v[2] = desc.image_depth;
      break;
    default:
      break;
  }
  return extent;
}

bool LayOutImage(const cl_image_desc& desc, size_t element_bytes, size_t row_pitch,
                 ImageLayout* out) {
  const ImageExtent extent = ExtentOf(desc);
  uint64_t row_bytes = 0;
  uint64_t slice_pitch = 0;
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(extent.v[0], element_bytes, &row_bytes)) return false;
  if (row_pitch == 0) row_pitch = row_bytes;
  if (row_pitch < row_bytes || __builtin_mul_overflow(row_pitch, extent.v[1], &slice_pitch) ||
      __builtin_mul_overflow(slice_pitch, extent.v[2], &bytes) || bytes > uint64_t{1} << 63) {
    return false;
  }
  // The last row has no gap behind it.
  bytes = bytes == 0 ? 0 : bytes - (row_pitch - row_bytes);
  *out = {element_bytes, extent, row_pitch, slice_pitch, bytes};
  return true;
}

}  // namespace sluice::wire
