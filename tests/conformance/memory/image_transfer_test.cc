// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "tests/conformance/harness/image_helpers.h"

namespace sluice::conformance {
namespace {

using Triple = std::array<size_t, 3>;

class ImageTransferTest : public WithImages {
 protected:
  // Calls `body(kind, format)` for all kinds and the formats that the driver has for them; and with
  // one format for kinds of some hundred KiB, which a transport may move by other ways.
  template <typename Body>
  void ForAll(Body body) const {
    for (const ImageKind& kind : kImageKinds) {
      for (const cl_image_format& format : UsableFormats(kind.type)) {
        SCOPED_TRACE(std::string(kind.name) + " " + FormatName(format));
        body(kind, format);
      }
    }
    size_t max_width = 0;  // PoCL's depends on the machine's memory.
    EXPECT_EQ(clGetDeviceInfo(device(), CL_DEVICE_IMAGE2D_MAX_WIDTH, sizeof(max_width), &max_width,
                              nullptr),
              CL_SUCCESS);
    for (ImageKind kind : kLarge) {
      const cl_image_format format = {CL_RGBA, CL_UNORM_INT8};
      if (kind.type == CL_MEM_OBJECT_IMAGE1D) kind.width = std::min(kind.width, max_width);
      SCOPED_TRACE(std::string("large ") + kind.name);
      body(kind, format);
    }
  }

 private:
  static constexpr ImageKind kLarge[] = {
      {"1d", CL_MEM_OBJECT_IMAGE1D, 16001, 0, 0, 0},
      {"1d_buffer", CL_MEM_OBJECT_IMAGE1D_BUFFER, 32000, 0, 0, 0},
      {"1d_array", CL_MEM_OBJECT_IMAGE1D_ARRAY, 1001, 0, 0, 47},
      {"2d", CL_MEM_OBJECT_IMAGE2D, 311, 173, 0, 0},
      {"2d_array", CL_MEM_OBJECT_IMAGE2D_ARRAY, 131, 89, 0, 11},
      {"3d", CL_MEM_OBJECT_IMAGE3D, 131, 89, 11, 0},
  };
};

// A part of the kind's image: origin and region.
struct Part {
  Triple origin;
  Triple region;
};

Part PartOf(const ImageKind& kind) {
  Part part = {{3, 0, 0}, {kind.width - 5, 1, 1}};
  if (kind.Rows() > 1) {
    part.origin[1] = 1;
    part.region[1] = kind.Rows() - 2;
  }
  if (kind.Slices() > 1) {
    part.origin[2] = 1;
    part.region[2] = kind.Slices() - 2;
  }
  return part;
}

// Copies `part` between packed pixels of a whole image and host memory with the given pitches.
void CopyPart(const ImageKind& kind, size_t pixel, const Part& part, std::vector<cl_uchar>* whole,
              std::vector<cl_uchar>* host, size_t row_pitch, size_t slice_pitch, bool to_host) {
  for (size_t z = 0; z < part.region[2]; ++z) {
    for (size_t y = 0; y < part.region[1]; ++y) {
      const size_t in_image =
          (((part.origin[2] + z) * kind.Rows() + part.origin[1] + y) * kind.width +
           part.origin[0]) *
          pixel;
      const size_t in_host = z * slice_pitch + y * row_pitch;
      auto image_row = whole->begin() + static_cast<std::ptrdiff_t>(in_image);
      auto host_row = host->begin() + static_cast<std::ptrdiff_t>(in_host);
      const auto bytes = static_cast<std::ptrdiff_t>(part.region[0] * pixel);
      if (to_host) {
        std::copy(image_row, image_row + bytes, host_row);
      } else {
        std::copy(host_row, host_row + bytes, image_row);
      }
    }
  }
}

// The pitch between slices: of a 1D array it is the pitch between its rows, since they are its
// slices.
size_t SlicePitch(const ImageKind& kind, const Part& part, size_t row_pitch) {
  if (kind.Slices() > 1) return row_pitch * (part.region[1] + 1);
  return 0;
}

// The whole of every image comes back as it was written.
TEST_F(ImageTransferTest, WholeImagesComeBack) {
  ForAll([&](const ImageKind& kind, const cl_image_format& format) {
    const TestImage image = Make(kind, format);
    const std::vector<cl_uchar> pixels = ImagePattern(kind, format, 1);
    WriteAll(kind, image.memory, pixels);
    EXPECT_EQ(ReadAll(kind, format, image.memory), pixels);
  });
}

// Images made from host memory have its pixels, with default and with explicit pitches.
TEST_F(ImageTransferTest, HostPointersFillImages) {
  ForAll([&](const ImageKind& kind, const cl_image_format& format) {
    if (kind.type == CL_MEM_OBJECT_IMAGE1D_BUFFER) return;  // Takes its pixels from the buffer.
    std::vector<cl_uchar> pixels = ImagePattern(kind, format, 2);
    cl_image_desc desc = Describe(kind.type, kind.width, kind.height, kind.depth, kind.array_size);
    const Own<cl_mem> copied = MAKE(
        "clCreateImage.copy", clCreateImage(context(), CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                                            &format, &desc, pixels.data(), error));
    EXPECT_EQ(ReadAll(kind, format, copied), pixels);
    const Own<cl_mem> used =
        MAKE("clCreateImage.use", clCreateImage(context(), CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR,
                                                &format, &desc, pixels.data(), error));
    EXPECT_EQ(ReadAll(kind, format, used), pixels);
    // With one more pixel in each row, and one more row in each slice where there are slices.
    const size_t pixel = PixelBytes(format), row_pitch = (kind.width + 1) * pixel;
    const Part whole = {{0, 0, 0}, {kind.width, kind.Rows(), kind.Slices()}};
    const size_t slice_pitch = SlicePitch(kind, whole, row_pitch);
    std::vector<cl_uchar> spread(row_pitch * (kind.Rows() + 1) * (kind.Slices() + 1));
    CopyPart(kind, pixel, whole, &pixels, &spread, row_pitch, slice_pitch, true);
    desc.image_row_pitch = row_pitch;
    desc.image_slice_pitch = kind.type == CL_MEM_OBJECT_IMAGE1D_ARRAY ? row_pitch : slice_pitch;
    if (kind.type == CL_MEM_OBJECT_IMAGE1D || kind.type == CL_MEM_OBJECT_IMAGE2D)
      desc.image_slice_pitch = 0;
    if (!MayRun(std::string("clCreateImage.pitched_") + kind.name)) return;
    const Own<cl_mem> pitched = MAKE(
        "clCreateImage.pitched", clCreateImage(context(), CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                                               &format, &desc, spread.data(), error));
    if (!Differs(std::string("clCreateImage.pitched_contents_") + kind.name)) {
      EXPECT_EQ(ReadAll(kind, format, pitched), pixels);
    }
  });
}

// A part of an image, with pitches of the host's choice, goes both ways and leaves the rest alone.
TEST_F(ImageTransferTest, PartsWithPitches) {
  ForAll([&](const ImageKind& kind, const cl_image_format& format) {
    const TestImage image = Make(kind, format);
    std::vector<cl_uchar> model = ImagePattern(kind, format, 3);
    WriteAll(kind, image.memory, model);
    const Part part = PartOf(kind);
    const size_t pixel = PixelBytes(format), row_pitch = (part.region[0] + 2) * pixel;
    const size_t slice_pitch = SlicePitch(kind, part, row_pitch);
    const size_t host_bytes = row_pitch * (part.region[1] + 1) * (part.region[2] + 1);
    std::vector<cl_uchar> back(host_bytes, 0xcd), expected(host_bytes, 0xcd);
    EXPECT_CL(
        "clEnqueueReadImage.part", CL_SUCCESS,
        clEnqueueReadImage(queue(), image.memory, CL_TRUE, part.origin.data(), part.region.data(),
                           row_pitch, slice_pitch, back.data(), 0, nullptr, nullptr));
    CopyPart(kind, pixel, part, &model, &expected, row_pitch, slice_pitch, true);
    EXPECT_TRUE(back == expected);
    std::vector<cl_uchar> fresh(host_bytes, 0x11);
    EXPECT_CL(
        "clEnqueueWriteImage.part", CL_SUCCESS,
        clEnqueueWriteImage(queue(), image.memory, CL_FALSE, part.origin.data(), part.region.data(),
                            row_pitch, slice_pitch, fresh.data(), 0, nullptr, nullptr));
    CopyPart(kind, pixel, part, &model, &fresh, row_pitch, slice_pitch, false);
    EXPECT_TRUE(ReadAll(kind, format, image.memory) == model);
  });
}

// Copies between images, to buffers and from buffers move the pixels asked for.
TEST_F(ImageTransferTest, CopiesMovePixels) {
  ForAll([&](const ImageKind& kind, const cl_image_format& format) {
    const TestImage from = Make(kind, format), to = Make(kind, format);
    const std::vector<cl_uchar> source = ImagePattern(kind, format, 4);
    std::vector<cl_uchar> model = ImagePattern(kind, format, 5);
    WriteAll(kind, from.memory, source);
    WriteAll(kind, to.memory, model);
    const Part part = PartOf(kind);
    const size_t pixel = PixelBytes(format);
    const std::string name = kind.name;
    // A refusal of the driver's through Sluice is reported by the next call that waits.
    const auto moved = [this](const std::string& check) {
      if (!Differs(check)) return true;
      clFinish(queue());
      return false;
    };
    EXPECT_CL("clEnqueueCopyImage.part_" + name, CL_SUCCESS,
              clEnqueueCopyImage(queue(), from.memory, to.memory, part.origin.data(),
                                 part.origin.data(), part.region.data(), 0, nullptr, nullptr));
    const size_t row = part.region[0] * pixel, packed = row * part.region[1] * part.region[2];
    std::vector<cl_uchar> pixels(packed), copy = source;
    CopyPart(kind, pixel, part, &copy, &pixels, row, row * part.region[1], true);
    CopyPart(kind, pixel, part, &model, &pixels, row, row * part.region[1], false);
    if (moved("clEnqueueCopyImage.part_" + name)) {
      EXPECT_TRUE(ReadAll(kind, format, to.memory) == model);
    }
    const Own<cl_mem> buffer = BufferOf(std::vector<cl_uchar>(packed + 32, 0xcd));
    EXPECT_CL("clEnqueueCopyImageToBuffer.part_" + name, CL_SUCCESS,
              clEnqueueCopyImageToBuffer(queue(), from.memory, buffer, part.origin.data(),
                                         part.region.data(), 16, 0, nullptr, nullptr));
    std::vector<cl_uchar> expected(packed + 32, 0xcd);
    std::copy(pixels.begin(), pixels.end(), expected.begin() + 16);
    if (moved("clEnqueueCopyImageToBuffer.part_" + name)) {
      EXPECT_TRUE(Read<cl_uchar>(buffer, packed + 32) == expected);
    }
    Write(buffer, expected);

    const TestImage again = Make(kind, format);
    model = ImagePattern(kind, format, 6);
    WriteAll(kind, again.memory, model);
    EXPECT_CL("clEnqueueCopyBufferToImage.part_" + name, CL_SUCCESS,
              clEnqueueCopyBufferToImage(queue(), buffer, again.memory, 16, part.origin.data(),
                                         part.region.data(), 0, nullptr, nullptr));
    CopyPart(kind, pixel, part, &model, &pixels, row, row * part.region[1], false);
    if (moved("clEnqueueCopyBufferToImage.part_" + name)) {
      EXPECT_TRUE(ReadAll(kind, format, again.memory) == model);
    }
  });
}

// A sub-buffer is as good a buffer as any: its bytes go to the image, and the image's to its bytes.
TEST_F(ImageTransferTest, CopiesWithPartsOfBuffers) {
  const ImageKind& kind = KindOf(CL_MEM_OBJECT_IMAGE2D);
  const cl_image_format format = UsableFormats(kind.type).front();
  const TestImage image = Make(kind, format);
  const std::vector<cl_uchar> pixels = ImagePattern(kind, format, 4);
  const size_t align = DeviceValue<cl_uint>(device(), CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8;
  const size_t size = align + pixels.size() + 32;
  std::vector<cl_uchar> model(size, 0xcd);
  std::copy(pixels.begin(), pixels.end(), model.begin() + static_cast<std::ptrdiff_t>(align + 16));
  const Own<cl_mem> full = BufferOf(model);
  const Own<cl_mem> empty = BufferOf(std::vector<cl_uchar>(size, 0xcd));
  const cl_buffer_region place = {align, pixels.size() + 32};
  const auto part = [&](cl_mem whole) {
    return MAKE("clCreateSubBuffer.plain",
                clCreateSubBuffer(whole, 0, CL_BUFFER_CREATE_TYPE_REGION, &place, error));
  };
  const Own<cl_mem> source = part(full), destination = part(empty);
  const size_t origin[3] = {};
  size_t region[3];
  WholeRegion(kind, region);
  if (MayRun("clEnqueueCopyBufferToImage.sub_buffer")) {
    EXPECT_CL("clEnqueueCopyBufferToImage.sub_buffer", CL_SUCCESS,
              clEnqueueCopyBufferToImage(queue(), source, image.memory, 16, origin, region, 0,
                                         nullptr, nullptr));
    EXPECT_TRUE(ReadAll(kind, format, image.memory) == pixels);
  }
  if (MayRun("clEnqueueCopyImageToBuffer.sub_buffer")) {
    EXPECT_CL("clEnqueueCopyImageToBuffer.sub_buffer", CL_SUCCESS,
              clEnqueueCopyImageToBuffer(queue(), image.memory, destination, origin, region, 16, 0,
                                         nullptr, nullptr));
    EXPECT_TRUE(Read<cl_uchar>(empty, size) == model);
  }
}

// A fill gives every pixel of its region the colour, converted to the format.
TEST_F(ImageTransferTest, FillsColourTheRegion) {
  ForAll([&](const ImageKind& kind, const cl_image_format& format) {
    const TestImage image = Make(kind, format);
    std::vector<cl_uchar> model = ImagePattern(kind, format, 7);
    WriteAll(kind, image.memory, model);
    const Part part = PartOf(kind);
    const size_t pixel = PixelBytes(format);
    std::vector<cl_uchar> colour(pixel);
    union {
      cl_float f[4];
      cl_int i[4];
      cl_uint u[4];
    } value = {};
    switch (format.image_channel_data_type) {
      case CL_FLOAT:
        for (int c = 0; c < 4; ++c) value.f[c] = 0.5f + static_cast<cl_float>(c);
        std::copy_n(reinterpret_cast<cl_uchar*>(value.f), pixel, colour.begin());
        break;
      case CL_UNORM_INT8:
        for (int c = 0; c < 4; ++c) value.f[c] = static_cast<cl_float>(c % 2);
        for (size_t c = 0; c < pixel; ++c) colour[c] = c % 2 == 0 ? 0 : 255;
        break;
      case CL_UNSIGNED_INT8:
        for (cl_uint c = 0; c < 4; ++c) value.u[c] = 10 + c;
        for (size_t c = 0; c < pixel; ++c) colour[c] = static_cast<cl_uchar>(10 + c);
        break;
      case CL_SIGNED_INT16:
        for (int c = 0; c < 4; ++c) value.i[c] = -100 - c;
        for (size_t c = 0; c < pixel / 2; ++c) {
          const cl_short one = static_cast<cl_short>(-100 - static_cast<int>(c));
          std::copy_n(reinterpret_cast<const cl_uchar*>(&one), 2,
                      colour.begin() + static_cast<std::ptrdiff_t>(c * 2));
        }
        break;
      default:
        for (cl_uint c = 0; c < 4; ++c) value.u[c] = 0x01020304u + c;
        std::copy_n(reinterpret_cast<cl_uchar*>(value.u), pixel, colour.begin());
        break;
    }
    const std::string name = std::string("clEnqueueFillImage.part_") + kind.name;
    EXPECT_CL(name, CL_SUCCESS,
              clEnqueueFillImage(queue(), image.memory, &value, part.origin.data(),
                                 part.region.data(), 0, nullptr, nullptr));
    const size_t row = part.region[0] * pixel;
    std::vector<cl_uchar> filled(row * part.region[1] * part.region[2]);
    for (size_t i = 0; i < filled.size(); ++i) filled[i] = colour[i % pixel];
    CopyPart(kind, pixel, part, &model, &filled, row, row * part.region[1], false);
    if (!Differs(name)) {
      EXPECT_TRUE(ReadAll(kind, format, image.memory) == model);
    }
  });
}

// A fill that a user event holds back waits in the queue, not in the call, and what is enqueued
// after it comes after it.
TEST_F(ImageTransferTest, FillsPassTheGate) {
  const cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
  const cl_uint colour[4] = {1, 2, 3, 4};
  const size_t origin[3] = {0, 0, 0};
  for (const cl_command_queue_properties properties :
       {cl_command_queue_properties{0},
        cl_command_queue_properties{CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE}}) {
    const Own<cl_command_queue> gated = Queue(properties);
    for (const ImageKind& kind : kImageKinds) {
      if (!MayRun(std::string("clEnqueueFillImage.gated_") + kind.name)) continue;
      SCOPED_TRACE(kind.name);
      const TestImage image = Make(kind, format);
      std::vector<cl_uchar> pixels = ImagePattern(kind, format, 9);
      const std::vector<cl_uchar> before = pixels;
      WriteAll(kind, image.memory, pixels);
      size_t region[3];
      WholeRegion(kind, region);
      const Own<cl_event> gate = UserEvent();
      Own<cl_event> filled, read;
      ASSERT_EQ(clEnqueueFillImage(gated, image.memory, colour, origin, region, 1, gate.AsList(),
                                   filled.Out()),
                CL_SUCCESS);
      ASSERT_EQ(clEnqueueReadImage(gated, image.memory, CL_FALSE, origin, region, 0, 0,
                                   pixels.data(), 1, filled.AsList(), read.Out()),
                CL_SUCCESS);
      ASSERT_EQ(clFlush(gated), CL_SUCCESS);
      EXPECT_GT(StatusOf(filled), CL_COMPLETE);
      EXPECT_TRUE(pixels == before);
      ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
      ASSERT_EQ(clWaitForEvents(1, read.AsList()), CL_SUCCESS);
      EXPECT_EQ(StatusOf(filled), CL_COMPLETE);
      for (size_t i = 0; i < pixels.size(); ++i) ASSERT_EQ(pixels[i], 1 + i % 4) << i;
    }
  }
}

// A mapped part shows the image's pixels at the pitches that the map tells, and takes what the host
// writes.
TEST_F(ImageTransferTest, MapsShowPixels) {
  ForAll([&](const ImageKind& kind, const cl_image_format& format) {
    if (!MayRun(std::string("clEnqueueMapImage.kind_") + kind.name)) return;
    const TestImage image = Make(kind, format);
    std::vector<cl_uchar> model = ImagePattern(kind, format, 8);
    WriteAll(kind, image.memory, model);
    const Part part = PartOf(kind);
    const size_t pixel = PixelBytes(format), row = part.region[0] * pixel;
    size_t row_pitch = 0, slice_pitch = 0;
    cl_int code = 77;
    auto* mapped = static_cast<cl_uchar*>(clEnqueueMapImage(
        queue(), image.memory, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, part.origin.data(),
        part.region.data(), &row_pitch, &slice_pitch, 0, nullptr, nullptr, &code));
    EXPECT_CL("clEnqueueMapImage.part", CL_SUCCESS, code);
    ASSERT_NE(mapped, nullptr);
    if (!Differs(std::string("clEnqueueMapImage.row_pitch_") + kind.name)) {
      EXPECT_GE(row_pitch, row);
    }
    // The rows of a 1D array are its slices.
    const bool row_is_slice = kind.type == CL_MEM_OBJECT_IMAGE1D_ARRAY;
    const size_t step = row_is_slice ? slice_pitch : row_pitch;
    std::vector<cl_uchar> pixels(row * part.region[1] * part.region[2]), seen(pixels.size());
    CopyPart(kind, pixel, part, &model, &pixels, row, row * part.region[1], true);
    for (size_t z = 0; z < part.region[2]; ++z) {
      for (size_t y = 0; y < part.region[1]; ++y) {
        cl_uchar* at = mapped + z * slice_pitch + y * step;
        std::copy(at, at + row,
                  seen.begin() + static_cast<std::ptrdiff_t>((z * part.region[1] + y) * row));
        std::fill(at, at + row, 0x3c);
      }
    }
    EXPECT_TRUE(seen == pixels);
    EXPECT_EQ(clEnqueueUnmapMemObject(queue(), image.memory, mapped, 0, nullptr, nullptr),
              CL_SUCCESS);
    std::fill(pixels.begin(), pixels.end(), 0x3c);
    CopyPart(kind, pixel, part, &model, &pixels, row, row * part.region[1], false);
    EXPECT_TRUE(ReadAll(kind, format, image.memory) == model);
  });
}

// Two maps of one image at a time both show its pixels; the end of one leaves the other as it is.
TEST_F(ImageTransferTest, OverlappingMapsAgree) {
  ForAll([&](const ImageKind& kind, const cl_image_format& format) {
    if (!MayRun(std::string("clEnqueueMapImage.kind_") + kind.name)) return;
    const TestImage image = Make(kind, format);
    const std::vector<cl_uchar> model = ImagePattern(kind, format, 9);
    WriteAll(kind, image.memory, model);
    const size_t origin[3] = {0, 0, 0};
    const Part part = PartOf(kind);
    const size_t pixel = PixelBytes(format);
    Triple whole;
    WholeRegion(kind, whole.data());
    std::array<size_t, 4> pitches = {};
    cl_int code = 77;
    auto* const all = static_cast<cl_uchar*>(
        clEnqueueMapImage(queue(), image.memory, CL_TRUE, CL_MAP_READ, origin, whole.data(),
                          &pitches[0], &pitches[1], 0, nullptr, nullptr, &code));
    EXPECT_CL("clEnqueueMapImage.whole", CL_SUCCESS, code);
    auto* const some = static_cast<cl_uchar*>(clEnqueueMapImage(
        queue(), image.memory, CL_TRUE, CL_MAP_READ, part.origin.data(), part.region.data(),
        &pitches[2], &pitches[3], 0, nullptr, nullptr, &code));
    EXPECT_CL("clEnqueueMapImage.overlapping", CL_SUCCESS, code);
    ASSERT_TRUE(all != nullptr && some != nullptr);
    // The first row of the part, in both.
    const bool row_is_slice = kind.type == CL_MEM_OBJECT_IMAGE1D_ARRAY;
    const size_t row = part.region[0] * pixel;
    const size_t step = row_is_slice ? pitches[1] : pitches[0];
    const cl_uchar* const same =
        all + part.origin[2] * pitches[1] + part.origin[1] * step + part.origin[0] * pixel;
    std::vector<cl_uchar> expected(row);
    CopyPart(kind, pixel, {part.origin, {part.region[0], 1, 1}},
             const_cast<std::vector<cl_uchar>*>(&model), &expected, row, row, true);
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), same));
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), some));
    EXPECT_EQ(clEnqueueUnmapMemObject(queue(), image.memory, all, 0, nullptr, nullptr), CL_SUCCESS);
    EXPECT_EQ(clFinish(queue()), CL_SUCCESS);
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), some));
    EXPECT_EQ(clEnqueueUnmapMemObject(queue(), image.memory, some, 0, nullptr, nullptr),
              CL_SUCCESS);
    EXPECT_TRUE(ReadAll(kind, format, image.memory) == model);
  });
}

// Blocking and non-blocking transfers of one image take effect in the order of the queue.
TEST_F(ImageTransferTest, WaysMixInOrder) {
  ForAll([&](const ImageKind& kind, const cl_image_format& format) {
    const TestImage image = Make(kind, format);
    std::vector<cl_uchar> model = ImagePattern(kind, format, 10);
    const std::vector<cl_uchar> first = ImagePattern(kind, format, 11);
    const size_t origin[3] = {0, 0, 0};
    Triple whole;
    WholeRegion(kind, whole.data());
    EXPECT_EQ(clEnqueueWriteImage(queue(), image.memory, CL_FALSE, origin, whole.data(), 0, 0,
                                  first.data(), 0, nullptr, nullptr),
              CL_SUCCESS);
    WriteAll(kind, image.memory, model);
    std::vector<cl_uchar> late(model.size());
    EXPECT_EQ(clEnqueueReadImage(queue(), image.memory, CL_FALSE, origin, whole.data(), 0, 0,
                                 late.data(), 0, nullptr, nullptr),
              CL_SUCCESS);
    WriteAll(kind, image.memory, first);
    EXPECT_TRUE(late == model);
    EXPECT_TRUE(ReadAll(kind, format, image.memory) == first);
  });
}

}  // namespace
}  // namespace sluice::conformance
