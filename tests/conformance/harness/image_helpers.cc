// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/harness/image_helpers.h"

#include <algorithm>
#include <cstring>

namespace sluice::conformance {

const ImageKind kImageKinds[6] = {
    {"1d", CL_MEM_OBJECT_IMAGE1D, 37, 0, 0, 0},
    {"1d_buffer", CL_MEM_OBJECT_IMAGE1D_BUFFER, 64, 0, 0, 0},
    {"1d_array", CL_MEM_OBJECT_IMAGE1D_ARRAY, 29, 0, 0, 5},
    {"2d", CL_MEM_OBJECT_IMAGE2D, 31, 17, 0, 0},
    {"2d_array", CL_MEM_OBJECT_IMAGE2D_ARRAY, 13, 11, 0, 4},
    {"3d", CL_MEM_OBJECT_IMAGE3D, 13, 7, 5, 0},
};

const cl_image_format kFormats[7] = {
    {CL_RGBA, CL_UNORM_INT8}, {CL_RGBA, CL_UNSIGNED_INT8}, {CL_RGBA, CL_SIGNED_INT16},
    {CL_RGBA, CL_FLOAT},      {CL_R, CL_UNSIGNED_INT32},   {CL_R, CL_UNORM_INT8},
    {CL_RG, CL_SIGNED_INT32},
};

size_t ImageKind::Rows() const {
  if (type == CL_MEM_OBJECT_IMAGE1D_ARRAY) return array_size;
  return std::max<size_t>(height, 1);
}

size_t ImageKind::Slices() const {
  if (type == CL_MEM_OBJECT_IMAGE2D_ARRAY) return array_size;
  return std::max<size_t>(depth, 1);
}

const ImageKind& KindOf(cl_mem_object_type type) {
  for (const ImageKind& kind : kImageKinds) {
    if (kind.type == type) return kind;
  }
  return kImageKinds[0];
}

std::string FormatName(const cl_image_format& format) {
  char text[48];
  std::snprintf(text, sizeof(text), "format_%x_%x", format.image_channel_order,
                format.image_channel_data_type);
  return text;
}

size_t PixelBytes(const cl_image_format& format) {
  size_t channels = 4;
  if (format.image_channel_order == CL_R) channels = 1;
  if (format.image_channel_order == CL_RG) channels = 2;
  switch (format.image_channel_data_type) {
    case CL_UNORM_INT8:
    case CL_UNSIGNED_INT8:
      return channels;
    case CL_SIGNED_INT16:
      return channels * 2;
    default:
      return channels * 4;
  }
}

cl_image_desc Describe(cl_mem_object_type type, size_t width, size_t height, size_t depth,
                       size_t layers) {
  cl_image_desc desc = {};
  desc.image_type = type;
  desc.image_width = width;
  desc.image_height = height;
  desc.image_depth = depth;
  desc.image_array_size = layers;
  return desc;
}

void WholeRegion(const ImageKind& kind, size_t region[3]) {
  region[0] = kind.width;
  region[1] = kind.Rows();
  region[2] = kind.Slices();
}

std::vector<cl_uchar> ImagePattern(const ImageKind& kind, const cl_image_format& format,
                                   unsigned seed) {
  const size_t bytes = kind.width * kind.Rows() * kind.Slices() * PixelBytes(format);
  std::vector<cl_uchar> pixels(bytes);
  if (format.image_channel_data_type == CL_FLOAT) {
    for (size_t i = 0; i < bytes / sizeof(cl_float); ++i) {
      const cl_float value = static_cast<cl_float>(i * 3 + seed) * 0.25f;
      std::memcpy(pixels.data() + i * sizeof(value), &value, sizeof(value));
    }
    return pixels;
  }
  for (size_t i = 0; i < bytes; ++i) pixels[i] = static_cast<cl_uchar>(i * 7 + seed * 31 + i / 256);
  return pixels;
}

void WithImages::SetUp() {
  WithQueue::SetUp();
  if (!HasImages()) GTEST_SKIP() << "the device has no images (CL_DEVICE_IMAGE_SUPPORT is false)";
}

std::vector<cl_image_format> WithImages::UsableFormats(cl_mem_object_type type) const {
  cl_uint count = 0;
  EXPECT_EQ(clGetSupportedImageFormats(context(), CL_MEM_READ_WRITE, type, 0, nullptr, &count),
            CL_SUCCESS);
  std::vector<cl_image_format> listed(count);
  EXPECT_EQ(
      clGetSupportedImageFormats(context(), CL_MEM_READ_WRITE, type, count, listed.data(), nullptr),
      CL_SUCCESS);
  std::vector<cl_image_format> usable;
  for (const cl_image_format& format : kFormats) {
    for (const cl_image_format& one : listed) {
      if (one.image_channel_order == format.image_channel_order &&
          one.image_channel_data_type == format.image_channel_data_type) {
        usable.push_back(format);
        break;
      }
    }
  }
  return usable;
}

TestImage WithImages::Make(const ImageKind& kind, const cl_image_format& format,
                           cl_mem_flags flags) const {
  TestImage image;
  cl_image_desc desc = Describe(kind.type, kind.width, kind.height, kind.depth, kind.array_size);
  if (kind.type == CL_MEM_OBJECT_IMAGE1D_BUFFER) {
    image.buffer = Buffer(kind.width * PixelBytes(format));
    desc.buffer = image.buffer;
  }
  image.memory = MAKE("clCreateImage.fixture",
                      clCreateImage(context(), flags, &format, &desc, nullptr, error));
  return image;
}

std::vector<cl_uchar> WithImages::ReadAll(const ImageKind& kind, const cl_image_format& format,
                                          cl_mem image) const {
  const size_t origin[3] = {};
  size_t region[3];
  WholeRegion(kind, region);
  std::vector<cl_uchar> pixels(region[0] * region[1] * region[2] * PixelBytes(format));
  EXPECT_CL("clEnqueueReadImage.whole", CL_SUCCESS,
            clEnqueueReadImage(queue(), image, CL_TRUE, origin, region, 0, 0, pixels.data(), 0,
                               nullptr, nullptr));
  return pixels;
}

void WithImages::WriteAll(const ImageKind& kind, cl_mem image,
                          const std::vector<cl_uchar>& pixels) const {
  const size_t origin[3] = {};
  size_t region[3];
  WholeRegion(kind, region);
  EXPECT_CL("clEnqueueWriteImage.whole", CL_SUCCESS,
            clEnqueueWriteImage(queue(), image, CL_TRUE, origin, region, 0, 0, pixels.data(), 0,
                                nullptr, nullptr));
}

}  // namespace sluice::conformance
