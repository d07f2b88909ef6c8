// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "tests/conformance/harness/fixtures.h"

namespace sluice::conformance {
namespace {

using Triple = std::array<size_t, 3>;

// One side of a rectangular transfer, with its pitches made explicit.
struct Side {
  Triple origin;
  size_t row_pitch;
  size_t slice_pitch;
};

size_t At(const Side& side, const Triple& region, size_t y, size_t z) {
  const size_t row = side.row_pitch == 0 ? region[0] : side.row_pitch;
  const size_t slice = side.slice_pitch == 0 ? region[1] * row : side.slice_pitch;
  return side.origin[0] + (side.origin[1] + y) * row + (side.origin[2] + z) * slice;
}

// A rectangular copy as the specification describes it.
void Model(const std::vector<unsigned char>& from, const Side& from_side,
           std::vector<unsigned char>* to, const Side& to_side, const Triple& region) {
  for (size_t z = 0; z < region[2]; ++z) {
    for (size_t y = 0; y < region[1]; ++y) {
      for (size_t x = 0; x < region[0]; ++x) {
        (*to)[At(to_side, region, y, z) + x] = from[At(from_side, region, y, z) + x];
      }
    }
  }
}

std::vector<unsigned char> Pattern(size_t bytes, unsigned char seed) {
  std::vector<unsigned char> values(bytes);
  for (size_t i = 0; i < bytes; ++i)
    values[i] = static_cast<unsigned char>(i * 13 + seed + i / 256);
  return values;
}

class RectTest : public WithQueue {
 protected:
  static constexpr size_t kBytes = 8192;

  void SetUp() override {
    WithQueue::SetUp();
    other_ = NewContext();
    foreign_ = MAKE("clCreateBuffer.foreign",
                    clCreateBuffer(other_, CL_MEM_READ_WRITE, kBytes, nullptr, error));
  }
  cl_mem foreign() const { return foreign_; }

  cl_int ReadRect(cl_mem buffer, const Side& from, void* host, const Side& to,
                  const Triple& region) const {
    return clEnqueueReadBufferRect(queue(), buffer, CL_TRUE, from.origin.data(), to.origin.data(),
                                   region.data(), from.row_pitch, from.slice_pitch, to.row_pitch,
                                   to.slice_pitch, host, 0, nullptr, nullptr);
  }
  cl_int WriteRect(cl_mem buffer, const Side& to, const void* host, const Side& from,
                   const Triple& region) const {
    return clEnqueueWriteBufferRect(queue(), buffer, CL_TRUE, to.origin.data(), from.origin.data(),
                                    region.data(), to.row_pitch, to.slice_pitch, from.row_pitch,
                                    from.slice_pitch, host, 0, nullptr, nullptr);
  }
  cl_int CopyRect(cl_mem from_buffer, const Side& from, cl_mem to_buffer, const Side& to,
                  const Triple& region) const {
    return clEnqueueCopyBufferRect(
        queue(), from_buffer, to_buffer, from.origin.data(), to.origin.data(), region.data(),
        from.row_pitch, from.slice_pitch, to.row_pitch, to.slice_pitch, 0, nullptr, nullptr);
  }

 private:
  Own<cl_context> other_;
  Own<cl_mem> foreign_;
};

struct Shape {
  Side device;
  Side host;
  Triple region;
};

// Default pitches, explicit ones, one row, one slice, odd widths, and different layouts on both
// sides.
const Shape kShapes[] = {
    {{{0, 0, 0}, 0, 0}, {{0, 0, 0}, 0, 0}, {64, 1, 1}},
    {{{0, 0, 0}, 0, 0}, {{0, 0, 0}, 0, 0}, {16, 8, 4}},
    {{{5, 2, 1}, 32, 512}, {{0, 0, 0}, 0, 0}, {11, 7, 3}},
    {{{0, 0, 0}, 0, 0}, {{3, 1, 2}, 40, 600}, {13, 5, 3}},
    {{{7, 3, 2}, 50, 700}, {{1, 4, 0}, 33, 528}, {17, 9, 4}},
    {{{0, 0, 1}, 64, 640}, {{0, 0, 0}, 64, 640}, {64, 10, 2}},
    {{{2, 0, 0}, 100, 0}, {{0, 5, 0}, 100, 0}, {98, 4, 1}},
};

// A rectangular read brings exactly the rectangle and leaves the host's other bytes alone.
TEST_F(RectTest, ReadsMatchTheModel) {
  const std::vector<unsigned char> source = Pattern(kBytes, 1);
  const Own<cl_mem> buffer = BufferOf(source);
  for (size_t i = 0; i < std::size(kShapes); ++i) {
    SCOPED_TRACE(i);
    std::vector<unsigned char> host(kBytes, 0xcd);
    std::vector<unsigned char> expected = host;
    EXPECT_CL("clEnqueueReadBufferRect.plain", CL_SUCCESS,
              ReadRect(buffer, kShapes[i].device, host.data(), kShapes[i].host, kShapes[i].region));
    Model(source, kShapes[i].device, &expected, kShapes[i].host, kShapes[i].region);
    EXPECT_TRUE(host == expected);
  }
}

// A rectangular write changes exactly the rectangle.
TEST_F(RectTest, WritesMatchTheModel) {
  const std::vector<unsigned char> host = Pattern(kBytes, 2);
  for (size_t i = 0; i < std::size(kShapes); ++i) {
    SCOPED_TRACE(i);
    std::vector<unsigned char> expected(kBytes, 0xcd);
    const Own<cl_mem> buffer = BufferOf(expected);
    EXPECT_CL(
        "clEnqueueWriteBufferRect.plain", CL_SUCCESS,
        WriteRect(buffer, kShapes[i].device, host.data(), kShapes[i].host, kShapes[i].region));
    Model(host, kShapes[i].host, &expected, kShapes[i].device, kShapes[i].region);
    EXPECT_TRUE(Read<unsigned char>(buffer, kBytes) == expected);
  }
}

// A rectangular copy changes exactly the rectangle of the destination.
TEST_F(RectTest, CopiesMatchTheModel) {
  const std::vector<unsigned char> source = Pattern(kBytes, 3);
  const Own<cl_mem> from = BufferOf(source);
  for (size_t i = 0; i < std::size(kShapes); ++i) {
    SCOPED_TRACE(i);
    std::vector<unsigned char> expected(kBytes, 0xcd);
    const Own<cl_mem> to = BufferOf(expected);
    EXPECT_CL("clEnqueueCopyBufferRect.plain", CL_SUCCESS,
              CopyRect(from, kShapes[i].device, to, kShapes[i].host, kShapes[i].region));
    Model(source, kShapes[i].device, &expected, kShapes[i].host, kShapes[i].region);
    EXPECT_TRUE(Read<unsigned char>(to, kBytes) == expected);
  }
}

// Non-blocking rectangles of some size arrive once the queue is finished.
TEST_F(RectTest, NonBlockingRectanglesArrive) {
  const size_t width = 3000, rows = 200, pitch = 4096;
  const std::vector<unsigned char> host = Pattern(width * rows, 4);
  const Own<cl_mem> buffer = Buffer(pitch * rows);
  std::vector<unsigned char> back(width * rows, 0);
  const Triple zero = {0, 0, 0}, region = {width, rows, 1};
  ASSERT_CL(
      "clEnqueueWriteBufferRect.non_blocking", CL_SUCCESS,
      clEnqueueWriteBufferRect(queue(), buffer, CL_FALSE, zero.data(), zero.data(), region.data(),
                               pitch, 0, width, 0, host.data(), 0, nullptr, nullptr));
  ASSERT_CL(
      "clEnqueueReadBufferRect.non_blocking", CL_SUCCESS,
      clEnqueueReadBufferRect(queue(), buffer, CL_FALSE, zero.data(), zero.data(), region.data(),
                              pitch, 0, width, 0, back.data(), 0, nullptr, nullptr));
  Finish();
  EXPECT_TRUE(back == host);
}

struct BadShape {
  const char* what;
  Shape shape;
};

// Rectangles that are empty, leave the buffer, or have impossible pitches; the first side is the
// buffer of 8192 bytes.
const BadShape kBadShapes[] = {
    {"zero_width", {{{0, 0, 0}, 0, 0}, {{0, 0, 0}, 0, 0}, {0, 1, 1}}},
    {"zero_height", {{{0, 0, 0}, 0, 0}, {{0, 0, 0}, 0, 0}, {16, 0, 1}}},
    {"zero_depth", {{{0, 0, 0}, 0, 0}, {{0, 0, 0}, 0, 0}, {16, 1, 0}}},
    {"past_end", {{{0, 0, 0}, 128, 0}, {{0, 0, 0}, 0, 0}, {64, 65, 1}}},
    {"origin_past_end", {{{8190, 0, 0}, 0, 0}, {{0, 0, 0}, 0, 0}, {16, 1, 1}}},
    {"slice_past_end", {{{0, 0, 3}, 64, 2048}, {{0, 0, 0}, 0, 0}, {64, 1, 2}}},
    {"wraps", {{{0, ~size_t{0} / 2, 0}, 64, 0}, {{0, 0, 0}, 0, 0}, {64, 1, 1}}},
    {"row_pitch_small", {{{0, 0, 0}, 15, 0}, {{0, 0, 0}, 0, 0}, {16, 4, 1}}},
    {"host_row_pitch_small", {{{0, 0, 0}, 0, 0}, {{0, 0, 0}, 15, 0}, {16, 4, 1}}},
    {"slice_pitch_small", {{{0, 0, 0}, 32, 64}, {{0, 0, 0}, 0, 0}, {16, 4, 2}}},
    {"host_slice_pitch_small", {{{0, 0, 0}, 0, 0}, {{0, 0, 0}, 32, 64}, {16, 4, 2}}},
    {"slice_pitch_odd", {{{0, 0, 0}, 32, 150}, {{0, 0, 0}, 0, 0}, {16, 4, 2}}},
    {"host_slice_pitch_odd", {{{0, 0, 0}, 0, 0}, {{0, 0, 0}, 32, 150}, {16, 4, 2}}},
};

// Each impossible rectangle is refused alike by read, write and copy.
TEST_F(RectTest, ImpossibleRectanglesAreRefused) {
  const Own<cl_mem> buffer = Buffer(kBytes);
  const Own<cl_mem> second = Buffer(kBytes * 4);
  std::vector<unsigned char> host(kBytes * 4);
  for (const BadShape& bad : kBadShapes) {
    const Shape& shape = bad.shape;
    EXPECT_CL(std::string("clEnqueueReadBufferRect.") + bad.what, CL_INVALID_VALUE,
              ReadRect(buffer, shape.device, host.data(), shape.host, shape.region));
    EXPECT_CL(std::string("clEnqueueWriteBufferRect.") + bad.what, CL_INVALID_VALUE,
              WriteRect(buffer, shape.device, host.data(), shape.host, shape.region));
    EXPECT_CL(std::string("clEnqueueCopyBufferRect.") + bad.what, CL_INVALID_VALUE,
              CopyRect(buffer, shape.device, second, shape.host, shape.region));
    EXPECT_CL(std::string("clEnqueueCopyBufferRect.to_") + bad.what, CL_INVALID_VALUE,
              CopyRect(second, shape.host, buffer, shape.device, shape.region));
  }
}

// Null handles, pointers and origins, foreign buffers and closed buffers are refused by the read.
TEST_F(RectTest, ReadRefusals) {
  const Own<cl_mem> buffer = Buffer(kBytes);
  std::vector<unsigned char> host(kBytes);
  const size_t zero[3] = {}, region[3] = {16, 4, 2};
  const auto read = [&](cl_command_queue queue, cl_mem from, const size_t* origin,
                        const size_t* host_origin, const size_t* size, void* pointer) {
    return clEnqueueReadBufferRect(queue, from, CL_TRUE, origin, host_origin, size, 0, 0, 0, 0,
                                   pointer, 0, nullptr, nullptr);
  };
  EXPECT_CL("clEnqueueReadBufferRect.null_queue", CL_INVALID_COMMAND_QUEUE,
            read(nullptr, buffer, zero, zero, region, host.data()));
  EXPECT_CL("clEnqueueReadBufferRect.null_buffer", CL_INVALID_MEM_OBJECT,
            read(queue(), nullptr, zero, zero, region, host.data()));
  EXPECT_CL("clEnqueueReadBufferRect.foreign", CL_INVALID_CONTEXT,
            read(queue(), foreign(), zero, zero, region, host.data()));
  EXPECT_CL("clEnqueueReadBufferRect.null_pointer", CL_INVALID_VALUE,
            read(queue(), buffer, zero, zero, region, nullptr));
  EXPECT_CL("clEnqueueReadBufferRect.null_region", CL_INVALID_VALUE,
            read(queue(), buffer, zero, zero, nullptr, host.data()));
  EXPECT_CL("clEnqueueReadBufferRect.null_origin", CL_INVALID_VALUE,
            read(queue(), buffer, nullptr, zero, region, host.data()));
  EXPECT_CL("clEnqueueReadBufferRect.null_host_origin", CL_INVALID_VALUE,
            read(queue(), buffer, zero, nullptr, region, host.data()));
  const Own<cl_mem> closed = Buffer(kBytes, CL_MEM_HOST_NO_ACCESS);
  EXPECT_CL("clEnqueueReadBufferRect.host_may_not", CL_INVALID_OPERATION,
            read(queue(), closed, zero, zero, region, host.data()));
}

// The same for the write.
TEST_F(RectTest, WriteRefusals) {
  const Own<cl_mem> buffer = Buffer(kBytes);
  std::vector<unsigned char> host(kBytes);
  const size_t zero[3] = {}, region[3] = {16, 4, 2};
  const auto write = [&](cl_command_queue queue, cl_mem to, const size_t* origin,
                         const size_t* host_origin, const size_t* size, const void* pointer) {
    return clEnqueueWriteBufferRect(queue, to, CL_TRUE, origin, host_origin, size, 0, 0, 0, 0,
                                    pointer, 0, nullptr, nullptr);
  };
  EXPECT_CL("clEnqueueWriteBufferRect.null_queue", CL_INVALID_COMMAND_QUEUE,
            write(nullptr, buffer, zero, zero, region, host.data()));
  EXPECT_CL("clEnqueueWriteBufferRect.null_buffer", CL_INVALID_MEM_OBJECT,
            write(queue(), nullptr, zero, zero, region, host.data()));
  EXPECT_CL("clEnqueueWriteBufferRect.foreign", CL_INVALID_CONTEXT,
            write(queue(), foreign(), zero, zero, region, host.data()));
  EXPECT_CL("clEnqueueWriteBufferRect.null_pointer", CL_INVALID_VALUE,
            write(queue(), buffer, zero, zero, region, nullptr));
  EXPECT_CL("clEnqueueWriteBufferRect.null_region", CL_INVALID_VALUE,
            write(queue(), buffer, zero, zero, nullptr, host.data()));
  EXPECT_CL("clEnqueueWriteBufferRect.null_origin", CL_INVALID_VALUE,
            write(queue(), buffer, nullptr, zero, region, host.data()));
  EXPECT_CL("clEnqueueWriteBufferRect.null_host_origin", CL_INVALID_VALUE,
            write(queue(), buffer, zero, nullptr, region, host.data()));
  const Own<cl_mem> closed = Buffer(kBytes, CL_MEM_HOST_READ_ONLY);
  EXPECT_CL("clEnqueueWriteBufferRect.host_may_not", CL_INVALID_OPERATION,
            write(queue(), closed, zero, zero, region, host.data()));
}

// The copy refuses what the others refuse, and rectangles of one buffer that overlap.
TEST_F(RectTest, CopyRefusals) {
  const Own<cl_mem> first = Buffer(kBytes);
  const Own<cl_mem> second = Buffer(kBytes);
  const size_t zero[3] = {}, region[3] = {16, 4, 2};
  const auto copy = [&](cl_command_queue queue, cl_mem from, cl_mem to, const size_t* from_origin,
                        const size_t* to_origin, const size_t* size, size_t row) {
    return clEnqueueCopyBufferRect(queue, from, to, from_origin, to_origin, size, row, 0, row, 0, 0,
                                   nullptr, nullptr);
  };
  EXPECT_CL("clEnqueueCopyBufferRect.null_queue", CL_INVALID_COMMAND_QUEUE,
            copy(nullptr, first, second, zero, zero, region, 0));
  EXPECT_CL("clEnqueueCopyBufferRect.null_source", CL_INVALID_MEM_OBJECT,
            copy(queue(), nullptr, second, zero, zero, region, 0));
  EXPECT_CL("clEnqueueCopyBufferRect.null_destination", CL_INVALID_MEM_OBJECT,
            copy(queue(), first, nullptr, zero, zero, region, 0));
  EXPECT_CL("clEnqueueCopyBufferRect.foreign_source", CL_INVALID_CONTEXT,
            copy(queue(), foreign(), second, zero, zero, region, 0));
  EXPECT_CL("clEnqueueCopyBufferRect.foreign_destination", CL_INVALID_CONTEXT,
            copy(queue(), first, foreign(), zero, zero, region, 0));
  EXPECT_CL("clEnqueueCopyBufferRect.null_region", CL_INVALID_VALUE,
            copy(queue(), first, second, zero, zero, nullptr, 0));
  EXPECT_CL("clEnqueueCopyBufferRect.null_source_origin", CL_INVALID_VALUE,
            copy(queue(), first, second, nullptr, zero, region, 0));
  EXPECT_CL("clEnqueueCopyBufferRect.null_destination_origin", CL_INVALID_VALUE,
            copy(queue(), first, second, zero, nullptr, region, 0));
  const size_t square[3] = {16, 16, 1};
  const size_t inside[3] = {8, 8, 0}, right[3] = {16, 0, 0}, below[3] = {0, 16, 0};
  EXPECT_CL("clEnqueueCopyBufferRect.overlap", CL_MEM_COPY_OVERLAP,
            copy(queue(), first, first, zero, inside, square, 64));
  EXPECT_CL("clEnqueueCopyBufferRect.overlap_exact", CL_MEM_COPY_OVERLAP,
            copy(queue(), first, first, zero, zero, square, 64));
  EXPECT_CL("clEnqueueCopyBufferRect.beside", CL_SUCCESS,
            copy(queue(), first, first, zero, right, square, 64));
  EXPECT_CL("clEnqueueCopyBufferRect.below", CL_SUCCESS,
            copy(queue(), first, first, zero, below, square, 64));
  // "src_row_pitch and dst_row_pitch must be equal" for copies within one buffer.
  const size_t far[3] = {0, 40, 0};
  EXPECT_CL("clEnqueueCopyBufferRect.same_buffer_other_pitch", CL_INVALID_VALUE,
            clEnqueueCopyBufferRect(queue(), first, first, zero, far, square, 64, 0, 32, 0, 0,
                                    nullptr, nullptr));
  Finish();
}

}  // namespace
}  // namespace sluice::conformance
