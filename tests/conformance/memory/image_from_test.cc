// SPDX-License-Identifier: Apache-2.0
// 2D images made from buffers (cl_khr_image2d_from_buffer) and from other 2D images.
#include <algorithm>

#include "tests/conformance/harness/image_helpers.h"

namespace sluice::conformance {
namespace {

constexpr cl_image_format kBytes = {CL_RGBA, CL_UNSIGNED_INT8};
constexpr size_t kWidth = 13, kHeight = 5, kPixel = 4;

class Image2dFromBufferTest : public WithImages {
 protected:
  void SetUp() override {
    WithImages::SetUp();
    if (IsSkipped()) return;
    if (!HasDeviceExtension(device(), "cl_khr_image2d_from_buffer"))
      GTEST_SKIP() << "the device has no cl_khr_image2d_from_buffer";
  }
  // The least pitch that rows of kWidth pixels may have.
  size_t Pitch() const {
    const size_t aligned = kPixel * DeviceValue<cl_uint>(device(), CL_DEVICE_IMAGE_PITCH_ALIGNMENT);
    return (kWidth * kPixel + aligned - 1) / aligned * aligned;
  }
  static cl_image_desc Over(cl_mem buffer, size_t pitch, size_t height = kHeight) {
    cl_image_desc desc = Describe(CL_MEM_OBJECT_IMAGE2D, kWidth, height);
    desc.mem_object = buffer;
    desc.image_row_pitch = pitch;
    return desc;
  }
  cl_mem Create(const cl_image_desc& desc, cl_int* error,
                cl_mem_flags flags = CL_MEM_READ_WRITE) const {
    return clCreateImage(context(), flags, &kBytes, &desc, nullptr, error);
  }
};

// Bytes written to the one are read from the other, each row where the pitch says; bytes between
// the rows belong to the buffer alone.
TEST_F(Image2dFromBufferTest, BytesAreShared) {
  const size_t pitch = Pitch() * 2;
  std::vector<cl_uchar> bytes = Counting<cl_uchar>(pitch * kHeight);
  const Own<cl_mem> buffer = BufferOf(bytes);
  const cl_image_desc desc = Over(buffer, pitch);
  const Own<cl_mem> image = MAKE("clCreateImage.2d_from_buffer", Create(desc, error));
  const size_t origin[3] = {}, region[3] = {kWidth, kHeight, 1};
  std::vector<cl_uchar> seen(kWidth * kPixel * kHeight);
  EXPECT_CL("clEnqueueReadImage.2d_from_buffer", CL_SUCCESS,
            clEnqueueReadImage(queue(), image, CL_TRUE, origin, region, 0, 0, seen.data(), 0,
                               nullptr, nullptr));
  for (size_t y = 0; y < kHeight; ++y) {
    EXPECT_TRUE(std::equal(&bytes[y * pitch], &bytes[y * pitch] + kWidth * kPixel,
                           &seen[y * kWidth * kPixel]))
        << "row " << y;
  }
  std::reverse(seen.begin(), seen.end());
  EXPECT_CL("clEnqueueWriteImage.2d_from_buffer", CL_SUCCESS,
            clEnqueueWriteImage(queue(), image, CL_TRUE, origin, region, 0, 0, seen.data(), 0,
                                nullptr, nullptr));
  for (size_t y = 0; y < kHeight; ++y)
    std::copy_n(&seen[y * kWidth * kPixel], kWidth * kPixel, &bytes[y * pitch]);
  EXPECT_EQ(Read<cl_uchar>(buffer, bytes.size()), bytes);
}

// Maps of the image show the buffer's bytes, and what is written there is in the buffer.
TEST_F(Image2dFromBufferTest, MapsShowTheBuffer) {
  const size_t pitch = Pitch() * 2;
  std::vector<cl_uchar> bytes = Counting<cl_uchar>(pitch * kHeight);
  const Own<cl_mem> buffer = BufferOf(bytes);
  const cl_image_desc desc = Over(buffer, pitch);
  const Own<cl_mem> image = MAKE("clCreateImage.2d_from_buffer", Create(desc, error));
  const size_t origin[3] = {1, 1, 0}, region[3] = {kWidth - 1, kHeight - 1, 1};
  size_t mapped_pitch = 0;
  cl_int status = CL_SUCCESS;
  auto* const mapped = static_cast<cl_uchar*>(
      clEnqueueMapImage(queue(), image, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, origin, region,
                        &mapped_pitch, nullptr, 0, nullptr, nullptr, &status));
  ASSERT_EQ(status, CL_SUCCESS);
  for (size_t y = 1; y < kHeight; ++y) {
    cl_uchar* const row = mapped + (y - 1) * mapped_pitch;
    EXPECT_EQ(row[0], bytes[y * pitch + kPixel]) << "row " << y;
    row[0] = bytes[y * pitch + kPixel] = 200;
  }
  ASSERT_EQ(clEnqueueUnmapMemObject(queue(), image, mapped, 0, nullptr, nullptr), CL_SUCCESS);
  EXPECT_EQ(Read<cl_uchar>(buffer, bytes.size()), bytes);
}

// A kernel reads of the image what is in a part of a buffer, which may be gone by then.
TEST_F(Image2dFromBufferTest, OfASubBuffer) {
  const size_t align = std::max<size_t>(
      DeviceValue<cl_uint>(device(), CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8,
      kPixel * DeviceValue<cl_uint>(device(), CL_DEVICE_IMAGE_BASE_ADDRESS_ALIGNMENT));
  const size_t pitch = Pitch();
  const std::vector<cl_uchar> bytes = Counting<cl_uchar>(align + pitch * kHeight);
  Own<cl_mem> buffer = BufferOf(bytes);
  const cl_buffer_region place = {align, pitch * kHeight};
  Own<cl_mem> part = MAKE(
      "clCreateSubBuffer.of_image",
      clCreateSubBuffer(buffer, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &place, error));
  const cl_image_desc desc = Over(part, pitch);
  const Own<cl_mem> image = MAKE("clCreateImage.2d_from_sub_buffer", Create(desc, error));
  part.Reset();
  buffer.Reset();
  const Own<cl_program> program = Program(
      "kernel void k(read_only image2d_t image, global uchar4* out) {"
      " int2 at = (int2)(get_global_id(0), 3); out[at.x] = convert_uchar4(read_imageui(image,"
      " CLK_ADDRESS_NONE | CLK_FILTER_NEAREST | CLK_NORMALIZED_COORDS_FALSE, at)); }");
  const Own<cl_kernel> kernel = Kernel(program, "k");
  const Own<cl_mem> out = Buffer(kWidth * kPixel);
  SetArg(kernel, 0, image);
  SetArg(kernel, 1, out);
  ASSERT_EQ(Launch(queue(), kernel, kWidth), CL_SUCCESS);
  const std::vector<cl_uchar> row = Read<cl_uchar>(out, kWidth * kPixel);
  EXPECT_TRUE(std::equal(row.begin(), row.end(), &bytes[align + 3 * pitch]));
}

// It names its buffer and its rows' pitch; without one, rows follow each other.
TEST_F(Image2dFromBufferTest, InfoTellsWhatItWasMadeOf) {
  const size_t pitch = Pitch() * 2;
  const Own<cl_mem> buffer = Buffer(pitch * kHeight);
  const cl_image_desc desc = Over(buffer, pitch);
  const Own<cl_mem> image = MAKE("clCreateImage.2d_from_buffer", Create(desc, error));
  size_t seen = 0;
  EXPECT_CL("clGetImageInfo.pitch_of_buffer", CL_SUCCESS,
            clGetImageInfo(image, CL_IMAGE_ROW_PITCH, sizeof(seen), &seen, nullptr));
  EXPECT_EQ(seen, pitch);
  cl_mem of = nullptr;
  EXPECT_CL("clGetMemObjectInfo.image_of_buffer", CL_SUCCESS,
            clGetMemObjectInfo(image, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof(of), &of, nullptr));
  EXPECT_EQ(of, buffer.get());
  cl_image_desc packed = Over(buffer, 0);
  packed.image_width = Pitch() / kPixel;
  const Own<cl_mem> without = MAKE("clCreateImage.2d_from_buffer_packed", Create(packed, error));
  EXPECT_EQ(clGetImageInfo(without, CL_IMAGE_ROW_PITCH, sizeof(seen), &seen, nullptr), CL_SUCCESS);
  EXPECT_EQ(seen, Pitch());
}

// Section 5.3.1, each rule's code.
TEST_F(Image2dFromBufferTest, Refusals) {
  const size_t pitch = Pitch();
  const Own<cl_mem> buffer = Buffer(pitch * kHeight);
  cl_image_desc desc = Over(buffer, pitch);
  // "CL_INVALID_IMAGE_FORMAT_DESCRIPTOR if a 2D image is created from a buffer and the row pitch
  // and base address alignment does not follow the rules".
  if (DeviceValue<cl_uint>(device(), CL_DEVICE_IMAGE_PITCH_ALIGNMENT) > 1) {
    desc = Over(buffer, pitch + kPixel, 1);
    EXPECT_CREATE("clCreateImage.2d_from_buffer_pitch", CL_INVALID_IMAGE_FORMAT_DESCRIPTOR,
                  Create(desc, error));
  }
  // "image_row_pitch ... >= image_width x size of element in bytes", and a multiple of that size.
  desc = Over(buffer, kWidth * kPixel - kPixel);
  EXPECT_CREATE("clCreateImage.2d_from_buffer_short_pitch",
                (AnyOf{CL_INVALID_IMAGE_DESCRIPTOR, CL_INVALID_IMAGE_FORMAT_DESCRIPTOR}),
                Create(desc, error));
  desc = Over(buffer, pitch + 1, 1);
  EXPECT_CREATE("clCreateImage.2d_from_buffer_odd_pitch",
                (AnyOf{CL_INVALID_IMAGE_DESCRIPTOR, CL_INVALID_IMAGE_FORMAT_DESCRIPTOR}),
                Create(desc, error));
  // The specification has no code for a buffer that is too small.
  desc = Over(buffer, pitch, kHeight + 1);
  EXPECT_CREATE("clCreateImage.2d_from_small_buffer",
                (AnyOf{CL_INVALID_IMAGE_DESCRIPTOR, CL_INVALID_IMAGE_SIZE, CL_INVALID_MEM_OBJECT}),
                Create(desc, error));
  // "CL_INVALID_VALUE ... mem_object was created with CL_MEM_READ_ONLY and flags specifies
  // CL_MEM_READ_WRITE", or "flags specifies CL_MEM_USE_HOST_PTR".
  const Own<cl_mem> constant = Buffer(pitch * kHeight, CL_MEM_READ_ONLY);
  desc = Over(constant, pitch);
  EXPECT_CREATE("clCreateImage.2d_from_constant_buffer", CL_INVALID_VALUE, Create(desc, error));
  desc = Over(buffer, pitch);
  std::vector<cl_uchar> host(pitch * kHeight);
  EXPECT_CREATE("clCreateImage.2d_from_buffer_and_host_ptr", CL_INVALID_HOST_PTR,
                clCreateImage(context(), CL_MEM_READ_WRITE, &kBytes, &desc, host.data(), error));
  EXPECT_CREATE("clCreateImage.2d_from_buffer_use_host_ptr", CL_INVALID_VALUE,
                clCreateImage(context(), CL_MEM_USE_HOST_PTR, &kBytes, &desc, host.data(), error));
  // Only 2D images and 1D image buffers are made of buffers.
  desc.image_type = CL_MEM_OBJECT_IMAGE2D_ARRAY;
  desc.image_array_size = 1;
  EXPECT_CREATE("clCreateImage.array_from_buffer", CL_INVALID_IMAGE_DESCRIPTOR,
                Create(desc, error));
}

class Image2dFromImageTest : public WithImages {
 protected:
  void SetUp() override {
    WithImages::SetUp();
    if (IsSkipped()) return;
    cl_uint count = 0;
    clGetSupportedImageFormats(context(), CL_MEM_READ_ONLY, CL_MEM_OBJECT_IMAGE2D, 0, nullptr,
                               &count);
    std::vector<cl_image_format> formats(count);
    clGetSupportedImageFormats(context(), CL_MEM_READ_ONLY, CL_MEM_OBJECT_IMAGE2D, count,
                               formats.data(), nullptr);
    if (std::none_of(formats.begin(), formats.end(), [](const cl_image_format& format) {
          return format.image_channel_order == CL_sRGBA;
        })) {
      GTEST_SKIP() << "the device has no images in sRGB";
    }
    pixels_ = Counting<cl_uchar>(kWidth * kHeight * kPixel);
    const cl_image_desc desc = Describe(CL_MEM_OBJECT_IMAGE2D, kWidth, kHeight);
    image_ = MAKE("clCreateImage.parent",
                  clCreateImage(context(), CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, &kLinear, &desc,
                                pixels_.data(), error));
  }
  cl_mem image() const { return image_; }
  const std::vector<cl_uchar>& pixels() const { return pixels_; }
  void ForgetImage() { image_.Reset(); }
  static cl_image_desc Over(cl_mem image) {
    cl_image_desc desc = Describe(CL_MEM_OBJECT_IMAGE2D, kWidth, kHeight);
    desc.mem_object = image;
    return desc;
  }
  cl_mem Create(const cl_image_format& format, const cl_image_desc& desc, cl_int* error) const {
    return clCreateImage(context(), CL_MEM_READ_ONLY, &format, &desc, nullptr, error);
  }

  static constexpr cl_image_format kLinear = {CL_RGBA, CL_UNORM_INT8};
  static constexpr cl_image_format kSrgb = {CL_sRGBA, CL_UNORM_INT8};

 private:
  Own<cl_mem> image_;
  std::vector<cl_uchar> pixels_;
};

// The elements are the parent's, in the new order; the image keeps its parent, and tells of it.
TEST_F(Image2dFromImageTest, ElementsAreShared) {
  const cl_image_desc desc = Over(image());
  const Own<cl_mem> other = MAKE("clCreateImage.srgb_of_linear", Create(kSrgb, desc, error));
  if (other.get() == nullptr) return;  // A failure, or a row of the table.
  cl_image_format format = {};
  EXPECT_CL("clGetImageInfo.format_of_srgb", CL_SUCCESS,
            clGetImageInfo(other, CL_IMAGE_FORMAT, sizeof(format), &format, nullptr));
  EXPECT_EQ(format.image_channel_order, cl_channel_order{CL_sRGBA});
  cl_mem of = nullptr;
  EXPECT_CL("clGetMemObjectInfo.image_of_image", CL_SUCCESS,
            clGetMemObjectInfo(other, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof(of), &of, nullptr));
  EXPECT_EQ(of, image());
  of = image();
  EXPECT_CL("clGetImageInfo.buffer_of_image", CL_SUCCESS,
            clGetImageInfo(other, CL_IMAGE_BUFFER, sizeof(of), &of, nullptr));
  EXPECT_EQ(of, nullptr);
  const size_t origin[3] = {}, region[3] = {kWidth, kHeight, 1};
  std::vector<cl_uchar> changed(pixels().rbegin(), pixels().rend()), seen(pixels().size());
  EXPECT_EQ(clEnqueueWriteImage(queue(), image(), CL_TRUE, origin, region, 0, 0, changed.data(), 0,
                                nullptr, nullptr),
            CL_SUCCESS);
  ForgetImage();
  EXPECT_CL("clEnqueueReadImage.srgb_of_linear", CL_SUCCESS,
            clEnqueueReadImage(queue(), other, CL_TRUE, origin, region, 0, 0, seen.data(), 0,
                               nullptr, nullptr));
  EXPECT_EQ(seen, changed);
}

// Rows lie as the parent's do, also where that was made from a buffer with a pitch of its own.
TEST_F(Image2dFromImageTest, RowsAreTheParents) {
  const size_t alignment = DeviceValue<cl_uint>(device(), CL_DEVICE_IMAGE_PITCH_ALIGNMENT);
  if (alignment == 0) GTEST_SKIP() << "the device makes no 2D images of buffers";
  const size_t pitch = alignment * kPixel * 2;
  const std::vector<cl_uchar> bytes = Counting<cl_uchar>(pitch * kHeight);
  const Own<cl_mem> buffer = BufferOf(bytes);
  cl_image_desc desc = Over(buffer);
  desc.image_row_pitch = pitch;
  const Own<cl_mem> parent =
      MAKE("clCreateImage.linear_from_buffer",
           clCreateImage(context(), CL_MEM_READ_WRITE, &kLinear, &desc, nullptr, error));
  desc = Over(parent);
  const Own<cl_mem> image =
      MAKE("clCreateImage.srgb_of_rows",
           clCreateImage(context(), CL_MEM_READ_WRITE, &kSrgb, &desc, nullptr, error));
  size_t seen = 0;
  EXPECT_CL("clGetImageInfo.pitch_of_image", CL_SUCCESS,
            clGetImageInfo(image, CL_IMAGE_ROW_PITCH, sizeof(seen), &seen, nullptr));
  EXPECT_EQ(seen, pitch);
  std::vector<cl_uchar> row(kWidth * kPixel);
  const size_t origin[3] = {0, 2, 0}, region[3] = {kWidth, 1, 1};
  EXPECT_EQ(clEnqueueReadImage(queue(), image, CL_TRUE, origin, region, 0, 0, row.data(), 0,
                               nullptr, nullptr),
            CL_SUCCESS);
  EXPECT_TRUE(std::equal(row.begin(), row.end(), &bytes[2 * pitch]));
}

// "CL_INVALID_IMAGE_FORMAT_DESCRIPTOR if a 2D image is created from a 2D image object and the rules
// described above are not followed": format, size and kind are the parent's.
TEST_F(Image2dFromImageTest, Refusals) {
  cl_image_desc desc = Over(image());
  const AnyOf no_rule = {CL_INVALID_IMAGE_FORMAT_DESCRIPTOR};
  EXPECT_CREATE("clCreateImage.of_image_other_type", no_rule,
                Create({CL_sRGBA, CL_UNSIGNED_INT8}, desc, error));
  EXPECT_CREATE("clCreateImage.of_image_other_order", no_rule,
                Create({CL_BGRA, CL_UNORM_INT8}, desc, error));
  const AnyOf no_size = {CL_INVALID_IMAGE_FORMAT_DESCRIPTOR, CL_INVALID_IMAGE_DESCRIPTOR};
  desc.image_width = kWidth - 1;
  EXPECT_CREATE("clCreateImage.of_image_other_width", no_size, Create(kSrgb, desc, error));
  desc = Over(image());
  desc.image_height = kHeight + 1;
  EXPECT_CREATE("clCreateImage.of_image_other_height", no_size, Create(kSrgb, desc, error));
  desc = Over(image());
  desc.image_type = CL_MEM_OBJECT_IMAGE1D;
  EXPECT_CREATE("clCreateImage.1d_of_image", CL_INVALID_IMAGE_DESCRIPTOR,
                Create(kSrgb, desc, error));
  const TestImage volume = Make(KindOf(CL_MEM_OBJECT_IMAGE3D), kLinear);
  desc = Over(volume.memory);
  EXPECT_CREATE("clCreateImage.of_volume", no_size, Create(kSrgb, desc, error));
  desc = Over(image());
  EXPECT_CREATE("clCreateImage.of_read_only_image", CL_INVALID_VALUE,
                clCreateImage(context(), CL_MEM_WRITE_ONLY, &kSrgb, &desc, nullptr, error));
}

}  // namespace
}  // namespace sluice::conformance
