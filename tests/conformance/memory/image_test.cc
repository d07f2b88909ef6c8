// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tests/conformance/harness/fixtures.h"
#include "tests/conformance/harness/image_helpers.h"

namespace sluice::conformance {
namespace {

class ImageTest : public WithImages {
 protected:
  template <typename T>
  T ImageInfo(cl_mem image, cl_image_info param) const {
    T value{};
    size_t bytes = 0;
    EXPECT_CL("clGetImageInfo.plain", CL_SUCCESS,
              clGetImageInfo(image, param, sizeof(value), &value, &bytes));
    EXPECT_EQ(bytes, sizeof(value)) << param;
    return value;
  }
};

// Every kind of image, in every format of the table that the driver lists for it, is made and tells
// its shape.
TEST_F(ImageTest, EveryKindIsCreated) {
  for (const ImageKind& kind : kImageKinds) {
    for (const cl_image_format& format : UsableFormats(kind.type)) {
      SCOPED_TRACE(std::string(kind.name) + " " + FormatName(format));
      const TestImage image = Make(kind, format);
      ASSERT_NE(image.memory.get(), nullptr);
      const cl_image_format seen = ImageInfo<cl_image_format>(image.memory, CL_IMAGE_FORMAT);
      EXPECT_EQ(seen.image_channel_order, format.image_channel_order);
      EXPECT_EQ(seen.image_channel_data_type, format.image_channel_data_type);
      EXPECT_EQ(ImageInfo<size_t>(image.memory, CL_IMAGE_ELEMENT_SIZE), PixelBytes(format));
      EXPECT_EQ(ImageInfo<size_t>(image.memory, CL_IMAGE_WIDTH), kind.width);
      EXPECT_EQ(ImageInfo<size_t>(image.memory, CL_IMAGE_HEIGHT), kind.height);
      EXPECT_EQ(ImageInfo<size_t>(image.memory, CL_IMAGE_DEPTH), kind.depth);
      if (!Differs(std::string("clGetImageInfo.array_size_") + kind.name)) {
        EXPECT_EQ(ImageInfo<size_t>(image.memory, CL_IMAGE_ARRAY_SIZE), kind.array_size);
      }
      if (!Differs(std::string("clGetImageInfo.row_pitch_") + kind.name)) {
        EXPECT_GE(ImageInfo<size_t>(image.memory, CL_IMAGE_ROW_PITCH),
                  kind.width * PixelBytes(format));
      }
      EXPECT_EQ(ImageInfo<cl_uint>(image.memory, CL_IMAGE_NUM_MIP_LEVELS), 0u);
      EXPECT_EQ(ImageInfo<cl_uint>(image.memory, CL_IMAGE_NUM_SAMPLES), 0u);
      cl_mem_object_type type = 0;
      EXPECT_EQ(clGetMemObjectInfo(image.memory, CL_MEM_TYPE, sizeof(type), &type, nullptr),
                CL_SUCCESS);
      EXPECT_EQ(type, kind.type);
    }
  }
}

// The old create functions make the same images.
TEST_F(ImageTest, OldFunctionsCreate) {
  const cl_image_format format = {CL_RGBA, CL_UNORM_INT8};
  std::vector<cl_uchar> host(16 * 8 * 4 * 4, 7);
  const Own<cl_mem> flat =
      MAKE("clCreateImage2D.plain",
           clCreateImage2D(context(), CL_MEM_READ_WRITE, &format, 16, 8, 0, nullptr, error));
  EXPECT_EQ(ImageInfo<size_t>(flat, CL_IMAGE_HEIGHT), 8u);
  MAKE("clCreateImage2D.copy", clCreateImage2D(context(), CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                                               &format, 16, 8, 64, host.data(), error));
  const Own<cl_mem> deep =
      MAKE("clCreateImage3D.plain",
           clCreateImage3D(context(), CL_MEM_READ_ONLY, &format, 16, 8, 4, 0, 0, nullptr, error));
  EXPECT_EQ(ImageInfo<size_t>(deep, CL_IMAGE_DEPTH), 4u);
  EXPECT_CREATE("clCreateImage2D.null_context", CL_INVALID_CONTEXT,
                clCreateImage2D(nullptr, CL_MEM_READ_WRITE, &format, 16, 8, 0, nullptr, error));
  EXPECT_CREATE(
      "clCreateImage3D.null_context", CL_INVALID_CONTEXT,
      clCreateImage3D(nullptr, CL_MEM_READ_WRITE, &format, 16, 8, 4, 0, 0, nullptr, error));
  EXPECT_CREATE("clCreateImage2D.zero_width", CL_INVALID_IMAGE_SIZE,
                clCreateImage2D(context(), CL_MEM_READ_WRITE, &format, 0, 8, 0, nullptr, error));
  EXPECT_CREATE(
      "clCreateImage3D.zero_depth", CL_INVALID_IMAGE_SIZE,
      clCreateImage3D(context(), CL_MEM_READ_WRITE, &format, 16, 8, 0, 0, 0, nullptr, error));
  EXPECT_CREATE("clCreateImage2D.null_format", CL_INVALID_IMAGE_FORMAT_DESCRIPTOR,
                clCreateImage2D(context(), CL_MEM_READ_WRITE, nullptr, 16, 8, 0, nullptr, error));
  EXPECT_CREATE(
      "clCreateImage3D.null_format", CL_INVALID_IMAGE_FORMAT_DESCRIPTOR,
      clCreateImage3D(context(), CL_MEM_READ_WRITE, nullptr, 16, 8, 4, 0, 0, nullptr, error));
  EXPECT_CREATE("clCreateImage2D.pitch_without_pointer", CL_INVALID_IMAGE_SIZE,
                clCreateImage2D(context(), CL_MEM_READ_WRITE, &format, 16, 8, 64, nullptr, error));
  EXPECT_CREATE(
      "clCreateImage2D.copy_null", CL_INVALID_HOST_PTR,
      clCreateImage2D(context(), CL_MEM_COPY_HOST_PTR, &format, 16, 8, 0, nullptr, error));
}

// The property form does the same with no properties, and refuses a property that it does not know.
TEST_F(ImageTest, WithProperties) {
  const cl_image_format format = {CL_RGBA, CL_UNORM_INT8};
  const cl_image_desc desc = Describe(CL_MEM_OBJECT_IMAGE2D, 16, 8);
  const cl_mem_properties unknown[] = {0x7ffe, 1, 0}, empty[] = {0};
  MAKE("clCreateImageWithProperties.none",
       clCreateImageWithProperties(context(), nullptr, CL_MEM_READ_WRITE, &format, &desc, nullptr,
                                   error));
  MAKE("clCreateImageWithProperties.empty",
       clCreateImageWithProperties(context(), empty, CL_MEM_READ_WRITE, &format, &desc, nullptr,
                                   error));
  EXPECT_CREATE("clCreateImageWithProperties.unknown_property", CL_INVALID_PROPERTY,
                clCreateImageWithProperties(context(), unknown, CL_MEM_READ_WRITE, &format, &desc,
                                            nullptr, error));
  EXPECT_CREATE("clCreateImageWithProperties.null_context", CL_INVALID_CONTEXT,
                clCreateImageWithProperties(nullptr, nullptr, CL_MEM_READ_WRITE, &format, &desc,
                                            nullptr, error));
}

// Each wrong argument of clCreateImage has its code.
TEST_F(ImageTest, CreateRefusals) {
  const cl_image_format format = {CL_RGBA, CL_UNORM_INT8};
  const cl_image_desc good = Describe(CL_MEM_OBJECT_IMAGE2D, 16, 8);
  std::vector<cl_uchar> host(16 * 8 * 4);
  const auto create = [&](cl_mem_flags flags, const cl_image_format* how, const cl_image_desc* what,
                          void* pointer, cl_int* error) {
    return clCreateImage(context(), flags, how, what, pointer, error);
  };
  MAKE("clCreateImage.plain", create(CL_MEM_READ_WRITE, &format, &good, nullptr, error));
  EXPECT_CREATE("clCreateImage.null_context", CL_INVALID_CONTEXT,
                clCreateImage(nullptr, CL_MEM_READ_WRITE, &format, &good, nullptr, error));
  EXPECT_CREATE("clCreateImage.unknown_flag", CL_INVALID_VALUE,
                create(cl_mem_flags{1} << 40, &format, &good, nullptr, error));
  EXPECT_CREATE("clCreateImage.two_accesses", CL_INVALID_VALUE,
                create(CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY, &format, &good, nullptr, error));
  EXPECT_CREATE("clCreateImage.null_format", CL_INVALID_IMAGE_FORMAT_DESCRIPTOR,
                create(CL_MEM_READ_WRITE, nullptr, &good, nullptr, error));
  EXPECT_CREATE("clCreateImage.null_desc", CL_INVALID_IMAGE_DESCRIPTOR,
                create(CL_MEM_READ_WRITE, &format, nullptr, nullptr, error));
  const cl_image_format nonsense = {CL_RGBA, CL_UNORM_SHORT_565};
  EXPECT_CREATE("clCreateImage.nonsense_format", CL_INVALID_IMAGE_FORMAT_DESCRIPTOR,
                create(CL_MEM_READ_WRITE, &nonsense, &good, nullptr, error));
  const cl_image_format no_order = {0x7ffe, CL_UNORM_INT8};
  EXPECT_CREATE("clCreateImage.unknown_order", CL_INVALID_IMAGE_FORMAT_DESCRIPTOR,
                create(CL_MEM_READ_WRITE, &no_order, &good, nullptr, error));
  cl_image_desc bad = good;
  bad.image_type = 0x7ffe;
  EXPECT_CREATE("clCreateImage.unknown_type", CL_INVALID_IMAGE_DESCRIPTOR,
                create(CL_MEM_READ_WRITE, &format, &bad, nullptr, error));
  bad = good;
  bad.num_mip_levels = 1;
  EXPECT_CREATE("clCreateImage.mip_levels",
                (AnyOf{CL_INVALID_IMAGE_DESCRIPTOR, CL_INVALID_MIP_LEVEL}),
                create(CL_MEM_READ_WRITE, &format, &bad, nullptr, error));
  bad = good;
  bad.image_row_pitch = 64;
  EXPECT_CREATE("clCreateImage.pitch_without_pointer", CL_INVALID_IMAGE_DESCRIPTOR,
                create(CL_MEM_READ_WRITE, &format, &bad, nullptr, error));
  bad.image_row_pitch = 60;
  EXPECT_CREATE("clCreateImage.pitch_small", CL_INVALID_IMAGE_DESCRIPTOR,
                create(CL_MEM_COPY_HOST_PTR, &format, &bad, host.data(), error));
  bad.image_row_pitch = 66;
  EXPECT_CREATE("clCreateImage.pitch_odd", CL_INVALID_IMAGE_DESCRIPTOR,
                create(CL_MEM_COPY_HOST_PTR, &format, &bad, host.data(), error));
  EXPECT_CREATE("clCreateImage.copy_null", CL_INVALID_HOST_PTR,
                create(CL_MEM_COPY_HOST_PTR, &format, &good, nullptr, error));
  EXPECT_CREATE("clCreateImage.unused_pointer", CL_INVALID_HOST_PTR,
                create(CL_MEM_READ_WRITE, &format, &good, host.data(), error));
  const cl_image_desc empty = Describe(CL_MEM_OBJECT_IMAGE2D, 0, 8);
  EXPECT_CREATE("clCreateImage.zero_width",
                (AnyOf{CL_INVALID_IMAGE_SIZE, CL_INVALID_IMAGE_DESCRIPTOR}),
                create(CL_MEM_READ_WRITE, &format, &empty, nullptr, error));
  const cl_image_desc huge = Describe(
      CL_MEM_OBJECT_IMAGE2D, DeviceValue<size_t>(device(), CL_DEVICE_IMAGE2D_MAX_WIDTH) + 1, 8);
  EXPECT_CREATE("clCreateImage.too_wide", CL_INVALID_IMAGE_SIZE,
                create(CL_MEM_READ_WRITE, &format, &huge, nullptr, error));
}

// Each type has its limits: an image that is as large as they allow in one dimension is not refused
// for that, one element more is CL_INVALID_IMAGE_SIZE.
TEST_F(ImageTest, SizesAboveTheDevices) {
  if (!TheHarness().IsSluice()) GTEST_SKIP() << "drivers differ (clCreateImage.too_wide)";
  struct Case {
    const char* name;
    cl_mem_object_type type;
    size_t cl_image_desc::*extent;
    cl_device_info limit;
  };
  const Case cases[] = {
      {"width_1d", CL_MEM_OBJECT_IMAGE1D, &cl_image_desc::image_width, CL_DEVICE_IMAGE2D_MAX_WIDTH},
      {"width_1d_array", CL_MEM_OBJECT_IMAGE1D_ARRAY, &cl_image_desc::image_width,
       CL_DEVICE_IMAGE2D_MAX_WIDTH},
      {"layers_1d", CL_MEM_OBJECT_IMAGE1D_ARRAY, &cl_image_desc::image_array_size,
       CL_DEVICE_IMAGE_MAX_ARRAY_SIZE},
      {"height_2d", CL_MEM_OBJECT_IMAGE2D, &cl_image_desc::image_height,
       CL_DEVICE_IMAGE2D_MAX_HEIGHT},
      {"height_2d_array", CL_MEM_OBJECT_IMAGE2D_ARRAY, &cl_image_desc::image_height,
       CL_DEVICE_IMAGE2D_MAX_HEIGHT},
      {"layers_2d", CL_MEM_OBJECT_IMAGE2D_ARRAY, &cl_image_desc::image_array_size,
       CL_DEVICE_IMAGE_MAX_ARRAY_SIZE},
      {"width_3d", CL_MEM_OBJECT_IMAGE3D, &cl_image_desc::image_width, CL_DEVICE_IMAGE3D_MAX_WIDTH},
      {"height_3d", CL_MEM_OBJECT_IMAGE3D, &cl_image_desc::image_height,
       CL_DEVICE_IMAGE3D_MAX_HEIGHT},
      {"depth_3d", CL_MEM_OBJECT_IMAGE3D, &cl_image_desc::image_depth, CL_DEVICE_IMAGE3D_MAX_DEPTH},
  };
  const auto create = [&](const cl_image_desc& desc) {
    const cl_image_format format = {CL_RGBA, CL_UNORM_INT8};
    cl_int status = CL_SUCCESS;
    const Own<cl_mem> made(
        clCreateImage(context(), CL_MEM_READ_ONLY, &format, &desc, nullptr, &status));
    return status;
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.name);
    cl_image_desc desc = Describe(one.type, 1, 1, 1, 1);
    desc.*one.extent = DeviceValue<size_t>(device(), one.limit);
    EXPECT_NE(create(desc), CL_INVALID_IMAGE_SIZE);
    ++(desc.*one.extent);
    EXPECT_EQ(create(desc), CL_INVALID_IMAGE_SIZE);
  }
  const size_t most = DeviceValue<size_t>(device(), CL_DEVICE_IMAGE_MAX_BUFFER_SIZE);
  cl_image_desc desc = Describe(CL_MEM_OBJECT_IMAGE1D_BUFFER, most + 1);
  const Own<cl_mem> buffer = Buffer(64);
  desc.buffer = buffer;
  EXPECT_EQ(create(desc), CL_INVALID_IMAGE_SIZE);
}

// Formats that a device need not have are decided by the driver, and then used or refused the same
// everywhere.
TEST_F(ImageTest, UncommonFormats) {
  const cl_image_desc desc = Describe(CL_MEM_OBJECT_IMAGE2D, 16, 8);
  for (const cl_image_format& format :
       {cl_image_format{CL_RGB, CL_UNORM_SHORT_565}, cl_image_format{CL_INTENSITY, CL_FLOAT},
        cl_image_format{CL_LUMINANCE, CL_UNORM_INT8}, cl_image_format{CL_sRGBA, CL_UNORM_INT8},
        cl_image_format{CL_DEPTH, CL_FLOAT}, cl_image_format{CL_ARGB, CL_UNORM_INT8}}) {
    EXPECT_CREATE(
        "clCreateImage." + FormatName(format),
        (AnyOf{CL_SUCCESS, CL_IMAGE_FORMAT_NOT_SUPPORTED, CL_INVALID_IMAGE_FORMAT_DESCRIPTOR}),
        clCreateImage(context(), CL_MEM_READ_ONLY, &format, &desc, nullptr, error));
  }
}

// Each kind of image has its list of formats, which holds those that the specification requires for
// reading.
TEST_F(ImageTest, SupportedFormats) {
  for (const ImageKind& kind : kImageKinds) {
    SCOPED_TRACE(kind.name);
    cl_uint count = 0;
    EXPECT_CL(
        "clGetSupportedImageFormats.count", CL_SUCCESS,
        clGetSupportedImageFormats(context(), CL_MEM_READ_ONLY, kind.type, 0, nullptr, &count));
    ASSERT_GE(count, 1u);
    std::vector<cl_image_format> formats(count);
    EXPECT_CL("clGetSupportedImageFormats.list", CL_SUCCESS,
              clGetSupportedImageFormats(context(), CL_MEM_READ_ONLY, kind.type, count,
                                         formats.data(), nullptr));
    for (const cl_image_format& needed :
         {cl_image_format{CL_RGBA, CL_UNORM_INT8}, cl_image_format{CL_RGBA, CL_UNSIGNED_INT8},
          cl_image_format{CL_RGBA, CL_SIGNED_INT16}, cl_image_format{CL_RGBA, CL_UNSIGNED_INT32},
          cl_image_format{CL_RGBA, CL_FLOAT}}) {
      EXPECT_TRUE(std::any_of(formats.begin(), formats.end(), [&](const cl_image_format& one) {
        return one.image_channel_order == needed.image_channel_order &&
               one.image_channel_data_type == needed.image_channel_data_type;
      })) << FormatName(needed);
    }
  }
}

// Wrong questions for formats are refused.
TEST_F(ImageTest, SupportedFormatsRefusals) {
  cl_image_format one;
  cl_uint count = 0;
  EXPECT_CL("clGetSupportedImageFormats.null_context", CL_INVALID_CONTEXT,
            clGetSupportedImageFormats(nullptr, CL_MEM_READ_ONLY, CL_MEM_OBJECT_IMAGE2D, 0, nullptr,
                                       &count));
  EXPECT_CL("clGetSupportedImageFormats.unknown_flags", CL_INVALID_VALUE,
            clGetSupportedImageFormats(context(), cl_mem_flags{1} << 40, CL_MEM_OBJECT_IMAGE2D, 0,
                                       nullptr, &count));
  EXPECT_CL("clGetSupportedImageFormats.not_an_image", CL_INVALID_VALUE,
            clGetSupportedImageFormats(context(), CL_MEM_READ_ONLY, CL_MEM_OBJECT_BUFFER, 0,
                                       nullptr, &count));
  EXPECT_CL("clGetSupportedImageFormats.no_room", CL_INVALID_VALUE,
            clGetSupportedImageFormats(context(), CL_MEM_READ_ONLY, CL_MEM_OBJECT_IMAGE2D, 0, &one,
                                       &count));
}

// Wrong queries of an image are refused; a buffer is no image.
TEST_F(ImageTest, InfoRefusals) {
  const TestImage image = Make(KindOf(CL_MEM_OBJECT_IMAGE2D), {CL_RGBA, CL_UNORM_INT8});
  const Own<cl_mem> buffer = Buffer(64);
  char value[64];
  EXPECT_CL("clGetImageInfo.unknown", CL_INVALID_VALUE,
            clGetImageInfo(image.memory, 0x7ffe, sizeof(value), value, nullptr));
  EXPECT_CL("clGetImageInfo.too_small", CL_INVALID_VALUE,
            clGetImageInfo(image.memory, CL_IMAGE_WIDTH, 1, value, nullptr));
  EXPECT_CL("clGetImageInfo.null", CL_INVALID_MEM_OBJECT,
            clGetImageInfo(nullptr, CL_IMAGE_WIDTH, sizeof(value), value, nullptr));
  EXPECT_CL("clGetImageInfo.buffer", CL_INVALID_MEM_OBJECT,
            clGetImageInfo(buffer, CL_IMAGE_WIDTH, sizeof(value), value, nullptr));
}

// An image over a buffer names it, keeps it, and shares its bytes.
TEST_F(ImageTest, ImageFromBufferSharesBytes) {
  for (const ImageKind& kind :
       {KindOf(CL_MEM_OBJECT_IMAGE1D_BUFFER), KindOf(CL_MEM_OBJECT_IMAGE2D)}) {
    SCOPED_TRACE(kind.name);
    const cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
    if (kind.type == CL_MEM_OBJECT_IMAGE2D &&
        DeviceValue<cl_uint>(device(), CL_DEVICE_IMAGE_PITCH_ALIGNMENT) == 0) {
      std::printf("2D images from buffers left out: CL_DEVICE_IMAGE_PITCH_ALIGNMENT is 0\n");
      continue;
    }
    const size_t alignment =
        std::max<size_t>(DeviceValue<cl_uint>(device(), CL_DEVICE_IMAGE_PITCH_ALIGNMENT), 1) * 4;
    const size_t pitch = (kind.width * 4 + alignment - 1) / alignment * alignment;
    const size_t rows = std::max<size_t>(kind.height, 1);
    Own<cl_mem> buffer = BufferOf(Counting<cl_uchar>(pitch * rows));
    cl_image_desc desc = Describe(kind.type, kind.width, kind.height);
    desc.buffer = buffer;
    if (kind.type == CL_MEM_OBJECT_IMAGE2D) desc.image_row_pitch = pitch;
    const Own<cl_mem> image =
        MAKE("clCreateImage.from_buffer",
             clCreateImage(context(), CL_MEM_READ_WRITE, &format, &desc, nullptr, error));
    ASSERT_NE(image.get(), nullptr);
    EXPECT_EQ(ImageInfo<cl_mem>(image, CL_IMAGE_BUFFER), buffer.get());
    cl_mem associated = nullptr;
    EXPECT_CL("clGetMemObjectInfo.image_buffer", CL_SUCCESS,
              clGetMemObjectInfo(image, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof(associated),
                                 &associated, nullptr));
    EXPECT_EQ(associated, buffer.get());
    buffer.Reset();
    std::vector<cl_uchar> row(kind.width * 4);
    const size_t origin[3] = {}, region[3] = {kind.width, 1, 1};
    ASSERT_EQ(clEnqueueReadImage(queue(), image, CL_TRUE, origin, region, 0, 0, row.data(), 0,
                                 nullptr, nullptr),
              CL_SUCCESS);
    EXPECT_EQ(row, Counting<cl_uchar>(kind.width * 4));
  }
}

}  // namespace
}  // namespace sluice::conformance
