// SPDX-License-Identifier: Apache-2.0
#include "tests/sharing/d3d/sharing_fixture.h"

#include <CL/cl_d3d10.h>
#include <CL/cl_d3d11.h>
#include <CL/cl_dx9_media_sharing.h>

#include <algorithm>
#include <cstring>

namespace sluice::d3dtest {
namespace {

size_t Channels(cl_channel_order order) {
  switch (order) {
    case CL_RGBA:
    case CL_BGRA:
      return 4;
    case CL_RG:
      return 2;
    default:
      return 1;
  }
}

size_t ChannelBytes(cl_channel_type type) {
  switch (type) {
    case CL_FLOAT:
    case CL_SIGNED_INT32:
    case CL_UNSIGNED_INT32:
      return 4;
    case CL_HALF_FLOAT:
    case CL_SIGNED_INT16:
    case CL_UNSIGNED_INT16:
    case CL_SNORM_INT16:
    case CL_UNORM_INT16:
      return 2;
    default:
      return 1;
  }
}

// A half between 0 and 1024, exact.
uint16_t Half(uint32_t value) {
  if (value == 0) return 0;
  uint32_t exponent = 15;
  uint32_t mantissa = value << 10;
  while (mantissa >= 2048u) {
    mantissa >>= 1;
    ++exponent;
  }
  return static_cast<uint16_t>(exponent << 10 | (mantissa & 1023u));
}

}  // namespace

size_t ElementBytes(const cl_image_format& format) {
  return Channels(format.image_channel_order) * ChannelBytes(format.image_channel_data_type);
}

Bytes Pattern(const cl_image_format& format, size_t elements, uint32_t seed) {
  Bytes bytes(elements * ElementBytes(format));
  const cl_channel_type type = format.image_channel_data_type;
  const size_t step = ChannelBytes(type);
  uint32_t state = seed * 2654435761u + 12345u;
  for (size_t at = 0; at < bytes.size(); at += step) {
    state = state * 1664525u + 1013904223u;
    const uint32_t random = state >> 8;
    if (type == CL_FLOAT) {
      const float value = static_cast<float>(random % 4096) / 16.0f;
      std::memcpy(&bytes[at], &value, sizeof(value));
    } else if (type == CL_HALF_FLOAT) {
      const uint16_t value = Half(random % 1024);
      std::memcpy(&bytes[at], &value, sizeof(value));
    } else {
      std::memcpy(&bytes[at], &random, step);
      // The lowest value of a signed normalised type means the same as the one above it.
      const bool lowest8 = type == CL_SNORM_INT8 && bytes[at] == 0x80;
      const bool lowest16 = type == CL_SNORM_INT16 && bytes[at] == 0 && bytes[at + 1] == 0x80;
      if (lowest8 || lowest16) bytes[at] += 1;
    }
  }
  return bytes;
}

Bytes Pattern(size_t bytes, uint32_t seed) {
  return Pattern({CL_R, CL_UNSIGNED_INT8}, bytes, seed);
}

Bytes Mirrored(const cl_image_format& format, const Size& size, const Bytes& bytes) {
  const size_t element = ElementBytes(format);
  Bytes out(bytes.size());
  for (size_t at = 0; at < size.elements(); ++at) {
    const size_t column = at % size.width;
    const size_t from = at - column + size.width - 1 - column;
    std::memcpy(&out[at * element], &bytes[from * element], element);
  }
  return out;
}

Own<cl_context> WithSharing::NewContext(const std::vector<cl_context_properties>& properties,
                                        cl_int* status) {
  const cl_device_id one = device();
  return Own<cl_context>(clCreateContext(properties.data(), 1, &one, nullptr, nullptr, status));
}

void WithSharing::MakeContext(const std::vector<cl_context_properties>& properties) {
  cl_int status = CL_SUCCESS;
  context_ = NewContext(properties, &status);
  ASSERT_EQ(status, CL_SUCCESS);
  queue_ = NewQueue();
}

Own<cl_command_queue> WithSharing::NewQueue(cl_command_queue_properties flags) {
  cl_int status = CL_SUCCESS;
  Own<cl_command_queue> queue(clCreateCommandQueue(context_, device(), flags, &status));
  EXPECT_EQ(status, CL_SUCCESS);
  return queue;
}

void WithSharing::LetContextGo() {
  programs_.clear();
  queue_.Reset();
  context_.Reset();
}

bool WithSharing::DeviceHas(const cl_image_format& format, cl_mem_object_type type,
                            cl_mem_flags flags) {
  cl_uint count = 0;
  clGetSupportedImageFormats(context_, flags, type, 0, nullptr, &count);
  std::vector<cl_image_format> formats(count);
  clGetSupportedImageFormats(context_, flags, type, count, formats.data(), nullptr);
  return std::any_of(formats.begin(), formats.end(), [&format](const cl_image_format& one) {
    return one.image_channel_order == format.image_channel_order &&
           one.image_channel_data_type == format.image_channel_data_type;
  });
}

Bytes WithSharing::ReadImage(cl_mem image, const Size& size) {
  Bytes out(size.elements() * ElementBytes(FormatOf(image)));
  const size_t origin[3] = {0, 0, 0};
  const size_t region[3] = {size.width, size.height, size.depth};
  EXPECT_EQ(clEnqueueReadImage(queue_, image, CL_TRUE, origin, region, 0, 0, out.data(), 0, nullptr,
                               nullptr),
            CL_SUCCESS);
  return out;
}

void WithSharing::WriteImage(cl_mem image, const Size& size, const Bytes& bytes) {
  const size_t origin[3] = {0, 0, 0};
  const size_t region[3] = {size.width, size.height, size.depth};
  EXPECT_EQ(clEnqueueWriteImage(queue_, image, CL_TRUE, origin, region, 0, 0, bytes.data(), 0,
                                nullptr, nullptr),
            CL_SUCCESS);
}

Bytes WithSharing::ReadBuffer(cl_mem buffer, size_t bytes) {
  Bytes out(bytes);
  EXPECT_EQ(clEnqueueReadBuffer(queue_, buffer, CL_TRUE, 0, bytes, out.data(), 0, nullptr, nullptr),
            CL_SUCCESS);
  return out;
}

void WithSharing::WriteBuffer(cl_mem buffer, const Bytes& bytes) {
  EXPECT_EQ(clEnqueueWriteBuffer(queue_, buffer, CL_TRUE, 0, bytes.size(), bytes.data(), 0, nullptr,
                                 nullptr),
            CL_SUCCESS);
}

Own<cl_kernel> WithSharing::BuildKernel(const char* source, const char* name) {
  cl_int status = CL_SUCCESS;
  Own<cl_program> program(clCreateProgramWithSource(context_, 1, &source, nullptr, &status));
  EXPECT_EQ(status, CL_SUCCESS);
  EXPECT_EQ(clBuildProgram(program, 0, nullptr, "", nullptr, nullptr), CL_SUCCESS);
  Own<cl_kernel> kernel(clCreateKernel(program, name, &status));
  EXPECT_EQ(status, CL_SUCCESS);
  programs_.push_back(std::move(program));
  return kernel;
}

Own<cl_mem> WithSharing::NewBuffer(size_t bytes) {
  cl_int status = CL_SUCCESS;
  Own<cl_mem> made(clCreateBuffer(context_, CL_MEM_READ_WRITE, bytes, nullptr, &status));
  EXPECT_EQ(status, CL_SUCCESS);
  return made;
}

Own<cl_mem> PlainBuffer(cl_context context) {
  cl_int status = CL_SUCCESS;
  Own<cl_mem> made(clCreateBuffer(context, CL_MEM_READ_WRITE, 64, nullptr, &status));
  EXPECT_EQ(status, CL_SUCCESS);
  return made;
}

Own<cl_mem> PlainImage(cl_context context) {
  cl_int status = CL_SUCCESS;
  const cl_image_format format = {CL_RGBA, CL_UNORM_INT8};
  cl_image_desc desc = {};
  desc.image_type = CL_MEM_OBJECT_IMAGE2D;
  desc.image_width = desc.image_height = 4;
  Own<cl_mem> made(clCreateImage(context, CL_MEM_READ_WRITE, &format, &desc, nullptr, &status));
  EXPECT_EQ(status, CL_SUCCESS);
  return made;
}

void ExpectNoOtherApi(cl_mem memory, cl_mem image, cl_mem_info own) {
  struct Names {
    cl_mem_info of_memory;
    cl_image_info of_image;
    cl_int code;
  };
  constexpr Names kApis[] = {
      {CL_MEM_D3D10_RESOURCE_KHR, CL_IMAGE_D3D10_SUBRESOURCE_KHR, CL_INVALID_D3D10_RESOURCE_KHR},
      {CL_MEM_D3D11_RESOURCE_KHR, CL_IMAGE_D3D11_SUBRESOURCE_KHR, CL_INVALID_D3D11_RESOURCE_KHR},
      {CL_MEM_DX9_MEDIA_SURFACE_INFO_KHR, CL_IMAGE_DX9_MEDIA_PLANE_KHR,
       CL_INVALID_DX9_MEDIA_SURFACE_KHR},
  };
  for (const Names& names : kApis) {
    if (names.of_memory == own) continue;
    char room[64];
    EXPECT_EQ(clGetMemObjectInfo(memory, names.of_memory, sizeof(room), room, nullptr), names.code);
    EXPECT_EQ(clGetImageInfo(image, names.of_image, sizeof(room), room, nullptr), names.code);
  }
}

cl_image_format FormatOf(cl_mem image) {
  cl_image_format format = {};
  EXPECT_EQ(clGetImageInfo(image, CL_IMAGE_FORMAT, sizeof(format), &format, nullptr), CL_SUCCESS);
  return format;
}

Size SizeOf(cl_mem image) {
  const auto ask = [image](cl_image_info name) {
    size_t value = 0;
    EXPECT_EQ(clGetImageInfo(image, name, sizeof(value), &value, nullptr), CL_SUCCESS);
    return value;
  };
  return {ask(CL_IMAGE_WIDTH), ask(CL_IMAGE_HEIGHT), std::max<size_t>(ask(CL_IMAGE_DEPTH), 1)};
}

}  // namespace sluice::d3dtest
