// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "tests/conformance/harness/image_helpers.h"

namespace sluice::conformance {
namespace {

using Triple = std::array<size_t, 3>;

class ImageRefusalTest : public WithImages {
 protected:
  void SetUp() override {
    WithImages::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    image_ = Make(KindOf(CL_MEM_OBJECT_IMAGE2D), kRgba);
    second_ = Make(KindOf(CL_MEM_OBJECT_IMAGE2D), kRgba);
    other_ = NewContext();
    const cl_image_desc desc = Describe(CL_MEM_OBJECT_IMAGE2D, 31, 17);
    foreign_ = MAKE("clCreateImage.foreign",
                    clCreateImage(other_, CL_MEM_READ_WRITE, &kRgba, &desc, nullptr, error));
  }
  cl_mem image() const { return image_.memory; }
  cl_mem second() const { return second_.memory; }
  cl_mem foreign() const { return foreign_; }
  Own<cl_mem> Closed(cl_mem_flags flags) const {
    const cl_image_desc desc = Describe(CL_MEM_OBJECT_IMAGE2D, 31, 17);
    return MAKE("clCreateImage.closed",
                clCreateImage(context(), flags, &kRgba, &desc, nullptr, error));
  }

  static constexpr cl_image_format kRgba = {CL_RGBA, CL_UNORM_INT8};
  static constexpr Triple kZero = {0, 0, 0}, kRegion = {31, 17, 1};

 private:
  TestImage image_, second_;
  Own<cl_context> other_;
  Own<cl_mem> foreign_;
};

struct BadRegion {
  const char* what;
  Triple origin;
  Triple region;
};

// Regions that are empty or leave an image of 31 by 17 pixels.
constexpr BadRegion kBadRegions[] = {
    {"zero_width", {0, 0, 0}, {0, 17, 1}},  {"zero_height", {0, 0, 0}, {31, 0, 1}},
    {"zero_depth", {0, 0, 0}, {31, 17, 0}}, {"too_wide", {0, 0, 0}, {32, 1, 1}},
    {"too_high", {0, 0, 0}, {1, 18, 1}},    {"past_right", {1, 0, 0}, {31, 1, 1}},
    {"past_bottom", {0, 10, 0}, {1, 8, 1}}, {"depth_of_2d", {0, 0, 0}, {1, 1, 2}},
    {"slice_of_2d", {0, 0, 1}, {1, 1, 1}},  {"wraps", {~size_t{0}, 0, 0}, {2, 1, 1}},
};

// Every transfer of an image refuses each bad region.
TEST_F(ImageRefusalTest, BadRegionsAreRefused) {
  if (!MayRun("clEnqueueReadImage.bad_regions")) GTEST_SKIP() << "see the table of differences";
  std::vector<cl_uchar> host(1 << 16);
  const Own<cl_mem> buffer = Buffer(1 << 16);
  const cl_float colour[4] = {};
  for (const BadRegion& bad : kBadRegions) {
    const size_t* origin = bad.origin.data();
    const size_t* region = bad.region.data();
    const std::string what = bad.what;
    EXPECT_CL("clEnqueueReadImage." + what, CL_INVALID_VALUE,
              clEnqueueReadImage(queue(), image(), CL_TRUE, origin, region, 0, 0, host.data(), 0,
                                 nullptr, nullptr));
    EXPECT_CL("clEnqueueWriteImage." + what, CL_INVALID_VALUE,
              clEnqueueWriteImage(queue(), image(), CL_TRUE, origin, region, 0, 0, host.data(), 0,
                                  nullptr, nullptr));
    EXPECT_CL("clEnqueueFillImage." + what, CL_INVALID_VALUE,
              clEnqueueFillImage(queue(), image(), colour, origin, region, 0, nullptr, nullptr));
    EXPECT_CL("clEnqueueCopyImage." + what, CL_INVALID_VALUE,
              clEnqueueCopyImage(queue(), image(), second(), origin, kZero.data(), region, 0,
                                 nullptr, nullptr));
    EXPECT_CL("clEnqueueCopyImage.to_" + what, CL_INVALID_VALUE,
              clEnqueueCopyImage(queue(), second(), image(), kZero.data(), origin, region, 0,
                                 nullptr, nullptr));
    EXPECT_CL("clEnqueueCopyImageToBuffer." + what, CL_INVALID_VALUE,
              clEnqueueCopyImageToBuffer(queue(), image(), buffer, origin, region, 0, 0, nullptr,
                                         nullptr));
    EXPECT_CL("clEnqueueCopyBufferToImage." + what, CL_INVALID_VALUE,
              clEnqueueCopyBufferToImage(queue(), buffer, image(), 0, origin, region, 0, nullptr,
                                         nullptr));
    size_t pitch = 0;
    EXPECT_CREATE("clEnqueueMapImage." + what, CL_INVALID_VALUE,
                  clEnqueueMapImage(queue(), image(), CL_TRUE, CL_MAP_READ, origin, region, &pitch,
                                    nullptr, 0, nullptr, nullptr, error));
  }
}

// Each other wrong argument of a read has its code.
TEST_F(ImageRefusalTest, Read) {
  std::vector<cl_uchar> host(1 << 16);
  const Own<cl_mem> buffer = Buffer(4096);
  const auto read = [&](cl_command_queue queue, cl_mem from, const size_t* origin,
                        const size_t* region, size_t row, size_t slice, void* to) {
    return clEnqueueReadImage(queue, from, CL_TRUE, origin, region, row, slice, to, 0, nullptr,
                              nullptr);
  };
  const size_t *zero = kZero.data(), *region = kRegion.data();
  EXPECT_CL("clEnqueueReadImage.plain", CL_SUCCESS,
            read(queue(), image(), zero, region, 0, 0, host.data()));
  EXPECT_CL("clEnqueueReadImage.null_queue", CL_INVALID_COMMAND_QUEUE,
            read(nullptr, image(), zero, region, 0, 0, host.data()));
  EXPECT_CL("clEnqueueReadImage.null_image", CL_INVALID_MEM_OBJECT,
            read(queue(), nullptr, zero, region, 0, 0, host.data()));
  EXPECT_CL("clEnqueueReadImage.buffer", CL_INVALID_MEM_OBJECT,
            read(queue(), buffer, zero, region, 0, 0, host.data()));
  EXPECT_CL("clEnqueueReadImage.foreign", CL_INVALID_CONTEXT,
            read(queue(), foreign(), zero, region, 0, 0, host.data()));
  EXPECT_CL("clEnqueueReadImage.null_pointer", CL_INVALID_VALUE,
            read(queue(), image(), zero, region, 0, 0, nullptr));
  EXPECT_CL("clEnqueueReadImage.null_origin", CL_INVALID_VALUE,
            read(queue(), image(), nullptr, region, 0, 0, host.data()));
  EXPECT_CL("clEnqueueReadImage.null_region", CL_INVALID_VALUE,
            read(queue(), image(), zero, nullptr, 0, 0, host.data()));
  EXPECT_CL("clEnqueueReadImage.pitch_small", CL_INVALID_VALUE,
            read(queue(), image(), zero, region, 31 * 4 - 1, 0, host.data()));
  const Own<cl_mem> closed = Closed(CL_MEM_HOST_WRITE_ONLY);
  EXPECT_CL("clEnqueueReadImage.host_may_not", CL_INVALID_OPERATION,
            read(queue(), closed, zero, region, 0, 0, host.data()));
}

// Each other wrong argument of a write has its code.
TEST_F(ImageRefusalTest, Write) {
  std::vector<cl_uchar> host(1 << 16);
  const Own<cl_mem> buffer = Buffer(4096);
  const auto write = [&](cl_command_queue queue, cl_mem to, const size_t* origin,
                         const size_t* region, size_t row, const void* from) {
    return clEnqueueWriteImage(queue, to, CL_TRUE, origin, region, row, 0, from, 0, nullptr,
                               nullptr);
  };
  const size_t *zero = kZero.data(), *region = kRegion.data();
  EXPECT_CL("clEnqueueWriteImage.plain", CL_SUCCESS,
            write(queue(), image(), zero, region, 0, host.data()));
  EXPECT_CL("clEnqueueWriteImage.null_queue", CL_INVALID_COMMAND_QUEUE,
            write(nullptr, image(), zero, region, 0, host.data()));
  EXPECT_CL("clEnqueueWriteImage.null_image", CL_INVALID_MEM_OBJECT,
            write(queue(), nullptr, zero, region, 0, host.data()));
  EXPECT_CL("clEnqueueWriteImage.buffer", CL_INVALID_MEM_OBJECT,
            write(queue(), buffer, zero, region, 0, host.data()));
  EXPECT_CL("clEnqueueWriteImage.foreign", CL_INVALID_CONTEXT,
            write(queue(), foreign(), zero, region, 0, host.data()));
  EXPECT_CL("clEnqueueWriteImage.null_pointer", CL_INVALID_VALUE,
            write(queue(), image(), zero, region, 0, nullptr));
  EXPECT_CL("clEnqueueWriteImage.pitch_small", CL_INVALID_VALUE,
            write(queue(), image(), zero, region, 31 * 4 - 1, host.data()));
  const Own<cl_mem> closed = Closed(CL_MEM_HOST_NO_ACCESS);
  EXPECT_CL("clEnqueueWriteImage.host_may_not", CL_INVALID_OPERATION,
            write(queue(), closed, zero, region, 0, host.data()));
}

// Each other wrong argument of a copy between images has its code.
TEST_F(ImageRefusalTest, Copy) {
  const auto copy = [&](cl_command_queue queue, cl_mem from, cl_mem to, const Triple& from_origin,
                        const Triple& to_origin, const Triple& region) {
    return clEnqueueCopyImage(queue, from, to, from_origin.data(), to_origin.data(), region.data(),
                              0, nullptr, nullptr);
  };
  EXPECT_CL("clEnqueueCopyImage.plain", CL_SUCCESS,
            copy(queue(), image(), second(), kZero, kZero, kRegion));
  EXPECT_CL("clEnqueueCopyImage.null_queue", CL_INVALID_COMMAND_QUEUE,
            copy(nullptr, image(), second(), kZero, kZero, kRegion));
  EXPECT_CL("clEnqueueCopyImage.null_source", CL_INVALID_MEM_OBJECT,
            copy(queue(), nullptr, second(), kZero, kZero, kRegion));
  EXPECT_CL("clEnqueueCopyImage.null_destination", CL_INVALID_MEM_OBJECT,
            copy(queue(), image(), nullptr, kZero, kZero, kRegion));
  EXPECT_CL("clEnqueueCopyImage.foreign_source", CL_INVALID_CONTEXT,
            copy(queue(), foreign(), second(), kZero, kZero, kRegion));
  EXPECT_CL("clEnqueueCopyImage.foreign_destination", CL_INVALID_CONTEXT,
            copy(queue(), image(), foreign(), kZero, kZero, kRegion));
  const TestImage other_format = Make(KindOf(CL_MEM_OBJECT_IMAGE2D), {CL_RGBA, CL_FLOAT});
  EXPECT_CL("clEnqueueCopyImage.other_format", CL_IMAGE_FORMAT_MISMATCH,
            copy(queue(), image(), other_format.memory, kZero, kZero, kRegion));
  EXPECT_CL("clEnqueueCopyImage.overlap", CL_MEM_COPY_OVERLAP,
            copy(queue(), image(), image(), {0, 0, 0}, {4, 4, 0}, {8, 8, 1}));
  EXPECT_CL("clEnqueueCopyImage.beside", CL_SUCCESS,
            copy(queue(), image(), image(), {0, 0, 0}, {8, 0, 0}, {8, 8, 1}));
  Finish();
}

// Each wrong argument of the copies between image and buffer has its code.
TEST_F(ImageRefusalTest, CopyToAndFromBuffers) {
  const size_t packed = 31 * 17 * 4;
  const Own<cl_mem> buffer = Buffer(packed);
  const Own<cl_mem> other_buffer = MAKE(
      "clCreateBuffer.plain", clCreateBuffer(context(), CL_MEM_READ_WRITE, packed, nullptr, error));
  const auto out = [&](cl_command_queue queue, cl_mem from, cl_mem to, size_t offset) {
    return clEnqueueCopyImageToBuffer(queue, from, to, kZero.data(), kRegion.data(), offset, 0,
                                      nullptr, nullptr);
  };
  const auto in = [&](cl_command_queue queue, cl_mem from, cl_mem to, size_t offset) {
    return clEnqueueCopyBufferToImage(queue, from, to, offset, kZero.data(), kRegion.data(), 0,
                                      nullptr, nullptr);
  };
  EXPECT_CL("clEnqueueCopyImageToBuffer.plain", CL_SUCCESS, out(queue(), image(), buffer, 0));
  EXPECT_CL("clEnqueueCopyImageToBuffer.null_queue", CL_INVALID_COMMAND_QUEUE,
            out(nullptr, image(), buffer, 0));
  EXPECT_CL("clEnqueueCopyImageToBuffer.null_image", CL_INVALID_MEM_OBJECT,
            out(queue(), nullptr, buffer, 0));
  EXPECT_CL("clEnqueueCopyImageToBuffer.null_buffer", CL_INVALID_MEM_OBJECT,
            out(queue(), image(), nullptr, 0));
  EXPECT_CL("clEnqueueCopyImageToBuffer.from_buffer", CL_INVALID_MEM_OBJECT,
            out(queue(), other_buffer, buffer, 0));
  EXPECT_CL("clEnqueueCopyImageToBuffer.to_image", CL_INVALID_MEM_OBJECT,
            out(queue(), image(), second(), 0));
  EXPECT_CL("clEnqueueCopyImageToBuffer.foreign", CL_INVALID_CONTEXT,
            out(queue(), foreign(), buffer, 0));
  EXPECT_CL("clEnqueueCopyImageToBuffer.past_end", CL_INVALID_VALUE,
            out(queue(), image(), buffer, 4));
  EXPECT_CL("clEnqueueCopyBufferToImage.plain", CL_SUCCESS, in(queue(), buffer, image(), 0));
  EXPECT_CL("clEnqueueCopyBufferToImage.null_queue", CL_INVALID_COMMAND_QUEUE,
            in(nullptr, buffer, image(), 0));
  EXPECT_CL("clEnqueueCopyBufferToImage.null_buffer", CL_INVALID_MEM_OBJECT,
            in(queue(), nullptr, image(), 0));
  EXPECT_CL("clEnqueueCopyBufferToImage.null_image", CL_INVALID_MEM_OBJECT,
            in(queue(), buffer, nullptr, 0));
  EXPECT_CL("clEnqueueCopyBufferToImage.from_image", CL_INVALID_MEM_OBJECT,
            in(queue(), second(), image(), 0));
  EXPECT_CL("clEnqueueCopyBufferToImage.to_buffer", CL_INVALID_MEM_OBJECT,
            in(queue(), buffer, other_buffer, 0));
  EXPECT_CL("clEnqueueCopyBufferToImage.foreign", CL_INVALID_CONTEXT,
            in(queue(), buffer, foreign(), 0));
  EXPECT_CL("clEnqueueCopyBufferToImage.past_end", CL_INVALID_VALUE,
            in(queue(), buffer, image(), 4));
  Finish();
}

// Each other wrong argument of a fill has its code.
TEST_F(ImageRefusalTest, Fill) {
  const Own<cl_mem> buffer = Buffer(4096);
  const cl_float colour[4] = {};
  const auto fill = [&](cl_command_queue queue, cl_mem to, const void* what, const size_t* origin,
                        const size_t* region) {
    return clEnqueueFillImage(queue, to, what, origin, region, 0, nullptr, nullptr);
  };
  const size_t *zero = kZero.data(), *region = kRegion.data();
  EXPECT_CL("clEnqueueFillImage.plain", CL_SUCCESS, fill(queue(), image(), colour, zero, region));
  EXPECT_CL("clEnqueueFillImage.null_queue", CL_INVALID_COMMAND_QUEUE,
            fill(nullptr, image(), colour, zero, region));
  EXPECT_CL("clEnqueueFillImage.null_image", CL_INVALID_MEM_OBJECT,
            fill(queue(), nullptr, colour, zero, region));
  EXPECT_CL("clEnqueueFillImage.buffer", CL_INVALID_MEM_OBJECT,
            fill(queue(), buffer, colour, zero, region));
  EXPECT_CL("clEnqueueFillImage.foreign", CL_INVALID_CONTEXT,
            fill(queue(), foreign(), colour, zero, region));
  EXPECT_CL("clEnqueueFillImage.null_colour", CL_INVALID_VALUE,
            fill(queue(), image(), nullptr, zero, region));
  EXPECT_CL("clEnqueueFillImage.null_origin", CL_INVALID_VALUE,
            fill(queue(), image(), colour, nullptr, region));
  EXPECT_CL("clEnqueueFillImage.null_region", CL_INVALID_VALUE,
            fill(queue(), image(), colour, zero, nullptr));
  Finish();
}

// Each other wrong argument of a map has its code.
TEST_F(ImageRefusalTest, Map) {
  const Own<cl_mem> buffer = Buffer(4096);
  size_t pitch = 0;
  const auto map = [&](cl_command_queue queue, cl_mem what, cl_map_flags flags,
                       const size_t* origin, const size_t* region, size_t* row, cl_int* error) {
    return clEnqueueMapImage(queue, what, CL_TRUE, flags, origin, region, row, nullptr, 0, nullptr,
                             nullptr, error);
  };
  const size_t *zero = kZero.data(), *region = kRegion.data();
  EXPECT_CREATE("clEnqueueMapImage.null_queue", CL_INVALID_COMMAND_QUEUE,
                map(nullptr, image(), CL_MAP_READ, zero, region, &pitch, error));
  EXPECT_CREATE("clEnqueueMapImage.null_image", CL_INVALID_MEM_OBJECT,
                map(queue(), nullptr, CL_MAP_READ, zero, region, &pitch, error));
  EXPECT_CREATE("clEnqueueMapImage.buffer", CL_INVALID_MEM_OBJECT,
                map(queue(), buffer, CL_MAP_READ, zero, region, &pitch, error));
  EXPECT_CREATE("clEnqueueMapImage.foreign", CL_INVALID_CONTEXT,
                map(queue(), foreign(), CL_MAP_READ, zero, region, &pitch, error));
  EXPECT_CREATE("clEnqueueMapImage.null_pitch", CL_INVALID_VALUE,
                map(queue(), image(), CL_MAP_READ, zero, region, nullptr, error));
  EXPECT_CREATE("clEnqueueMapImage.null_origin", CL_INVALID_VALUE,
                map(queue(), image(), CL_MAP_READ, nullptr, region, &pitch, error));
  EXPECT_CREATE("clEnqueueMapImage.null_region", CL_INVALID_VALUE,
                map(queue(), image(), CL_MAP_READ, zero, nullptr, &pitch, error));
  EXPECT_CREATE("clEnqueueMapImage.unknown_flag", CL_INVALID_VALUE,
                map(queue(), image(), cl_map_flags{1} << 20, zero, region, &pitch, error));
  const Own<cl_mem> closed = Closed(CL_MEM_HOST_WRITE_ONLY);
  EXPECT_CREATE("clEnqueueMapImage.host_may_not", CL_INVALID_OPERATION,
                map(queue(), closed, CL_MAP_READ, zero, region, &pitch, error));
  // The slice pitch must be asked for where the image has slices.
  const TestImage deep = Make(KindOf(CL_MEM_OBJECT_IMAGE3D), kRgba);
  EXPECT_CREATE("clEnqueueMapImage.null_slice_pitch", CL_INVALID_VALUE,
                clEnqueueMapImage(queue(), deep.memory, CL_TRUE, CL_MAP_READ, kZero.data(),
                                  kRegion.data(), &pitch, nullptr, 0, nullptr, nullptr, error));
}

}  // namespace
}  // namespace sluice::conformance
