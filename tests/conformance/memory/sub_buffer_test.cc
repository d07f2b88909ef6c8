// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/harness/fixtures.h"

namespace sluice::conformance {
namespace {

class SubBufferTest : public WithProgram {
 protected:
  // CL_DEVICE_MEM_BASE_ADDR_ALIGN is in bits.
  size_t Alignment() const {
    return DeviceValue<cl_uint>(device(), CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8;
  }
  Own<cl_mem> Part(cl_mem parent, size_t origin, size_t bytes, cl_mem_flags flags = 0) const {
    const cl_buffer_region region = {origin, bytes};
    return MAKE("clCreateSubBuffer.plain",
                clCreateSubBuffer(parent, flags, CL_BUFFER_CREATE_TYPE_REGION, &region, error));
  }
};

// A sub-buffer is a window: what is written through one side is read through the other.
TEST_F(SubBufferTest, IsAWindowOfItsParent) {
  const size_t step = Alignment() / sizeof(cl_int);
  const Own<cl_mem> parent = BufferOf(Counting(step * 4));
  const Own<cl_mem> part = Part(parent, Alignment(), Alignment() * 2);
  EXPECT_EQ(Read<cl_int>(part, step * 2), Counting<cl_int>(step * 2, static_cast<cl_int>(step)));
  Write(part, std::vector<cl_int>(step, 77), step);
  EXPECT_EQ(Read<cl_int>(parent, step, step * 2), std::vector<cl_int>(step, 77));
  EXPECT_EQ(Read<cl_int>(parent, step, step), Counting<cl_int>(step, static_cast<cl_int>(step)));
}

// A kernel that gets a sub-buffer sees its first byte at the sub-buffer's origin.
TEST_F(SubBufferTest, IsAKernelArgument) {
  const size_t step = Alignment() / sizeof(cl_int);
  const Own<cl_mem> parent = BufferOf(std::vector<cl_int>(step * 3, 1));
  const Own<cl_mem> part = Part(parent, Alignment(), Alignment());
  const Own<cl_kernel> kernel = Kernel("fill_int");
  SetArg(kernel, 0, part);
  SetArg(kernel, 1, cl_int{9});
  ASSERT_EQ(Launch(queue(), kernel, step), CL_SUCCESS);
  EXPECT_EQ(Read<cl_int>(parent, step), std::vector<cl_int>(step, 1));
  EXPECT_EQ(Read<cl_int>(parent, step, step), std::vector<cl_int>(step, 9));
  EXPECT_EQ(Read<cl_int>(parent, step, step * 2), std::vector<cl_int>(step, 1));
}

// A sub-buffer tells its parent, its offset and the flags that it inherits.
TEST_F(SubBufferTest, InfoTellsItsPlace) {
  std::vector<cl_int> host(Alignment());
  const Own<cl_mem> parent =
      Buffer(host.size() * sizeof(cl_int),
             CL_MEM_READ_ONLY | CL_MEM_USE_HOST_PTR | CL_MEM_HOST_READ_ONLY, host.data());
  const Own<cl_mem> part = Part(parent, Alignment(), Alignment());
  cl_mem associated = nullptr;
  size_t value = 0;
  cl_mem_flags flags = 0;
  void* pointer = nullptr;
  EXPECT_CL("clGetMemObjectInfo.parent", CL_SUCCESS,
            clGetMemObjectInfo(part, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof(associated), &associated,
                               nullptr));
  EXPECT_EQ(associated, parent.get());
  EXPECT_CL("clGetMemObjectInfo.offset", CL_SUCCESS,
            clGetMemObjectInfo(part, CL_MEM_OFFSET, sizeof(value), &value, nullptr));
  EXPECT_EQ(value, Alignment());
  EXPECT_CL("clGetMemObjectInfo.sub_size", CL_SUCCESS,
            clGetMemObjectInfo(part, CL_MEM_SIZE, sizeof(value), &value, nullptr));
  EXPECT_EQ(value, Alignment());
  EXPECT_CL("clGetMemObjectInfo.sub_flags", CL_SUCCESS,
            clGetMemObjectInfo(part, CL_MEM_FLAGS, sizeof(flags), &flags, nullptr));
  EXPECT_EQ(flags, static_cast<cl_mem_flags>(CL_MEM_READ_ONLY | CL_MEM_USE_HOST_PTR |
                                             CL_MEM_HOST_READ_ONLY));
  EXPECT_CL("clGetMemObjectInfo.sub_host_ptr", CL_SUCCESS,
            clGetMemObjectInfo(part, CL_MEM_HOST_PTR, sizeof(pointer), &pointer, nullptr));
  EXPECT_EQ(pointer, reinterpret_cast<char*>(host.data()) + Alignment());
}

// A sub-buffer keeps its parent's memory after the application released the parent.
TEST_F(SubBufferTest, KeepsItsParent) {
  const size_t step = Alignment() / sizeof(cl_int);
  Own<cl_mem> parent = BufferOf(Counting(step * 2));
  const Own<cl_mem> part = Part(parent, Alignment(), Alignment());
  parent.Reset();
  EXPECT_EQ(Read<cl_int>(part, step), Counting<cl_int>(step, static_cast<cl_int>(step)));
}

// Each wrong argument of clCreateSubBuffer has its code.
TEST_F(SubBufferTest, CreateRefusals) {
  const size_t align = Alignment();
  const Own<cl_mem> parent = Buffer(align * 4);
  const cl_buffer_region good = {align, align};
  EXPECT_CREATE("clCreateSubBuffer.null_buffer", CL_INVALID_MEM_OBJECT,
                clCreateSubBuffer(nullptr, 0, CL_BUFFER_CREATE_TYPE_REGION, &good, error));
  const Own<cl_mem> part = Part(parent, align, align);
  EXPECT_CREATE("clCreateSubBuffer.of_sub_buffer", CL_INVALID_MEM_OBJECT,
                clCreateSubBuffer(part, 0, CL_BUFFER_CREATE_TYPE_REGION, &good, error));
  EXPECT_CREATE("clCreateSubBuffer.unknown_type", CL_INVALID_VALUE,
                clCreateSubBuffer(parent, 0, 0x7ffe, &good, error));
  EXPECT_CREATE("clCreateSubBuffer.null_region", CL_INVALID_VALUE,
                clCreateSubBuffer(parent, 0, CL_BUFFER_CREATE_TYPE_REGION, nullptr, error));
  const cl_buffer_region past_end = {align * 3, align * 2};
  EXPECT_CREATE("clCreateSubBuffer.past_end", CL_INVALID_VALUE,
                clCreateSubBuffer(parent, 0, CL_BUFFER_CREATE_TYPE_REGION, &past_end, error));
  const cl_buffer_region wraps = {align * 2, ~size_t{0} - align};
  EXPECT_CREATE("clCreateSubBuffer.wraps", CL_INVALID_VALUE,
                clCreateSubBuffer(parent, 0, CL_BUFFER_CREATE_TYPE_REGION, &wraps, error));
  const cl_buffer_region empty = {0, 0};
  EXPECT_CREATE("clCreateSubBuffer.zero_size", CL_INVALID_BUFFER_SIZE,
                clCreateSubBuffer(parent, 0, CL_BUFFER_CREATE_TYPE_REGION, &empty, error));
  if (align > 1) {
    const cl_buffer_region crooked = {1, align};
    EXPECT_CREATE("clCreateSubBuffer.misaligned", CL_MISALIGNED_SUB_BUFFER_OFFSET,
                  clCreateSubBuffer(parent, 0, CL_BUFFER_CREATE_TYPE_REGION, &crooked, error));
  }
}

// A sub-buffer may narrow its parent's access and not widen it; host pointer flags are not its own.
TEST_F(SubBufferTest, FlagRefusals) {
  const size_t align = Alignment();
  const cl_buffer_region region = {0, align};
  const auto create = [&](cl_mem parent, cl_mem_flags flags, cl_int* error) {
    return clCreateSubBuffer(parent, flags, CL_BUFFER_CREATE_TYPE_REGION, &region, error);
  };
  const Own<cl_mem> whole = Buffer(align);
  MAKE("clCreateSubBuffer.narrow_read",
       create(whole, CL_MEM_READ_ONLY | CL_MEM_HOST_NO_ACCESS, error));
  EXPECT_CREATE("clCreateSubBuffer.unknown_flag", CL_INVALID_VALUE,
                create(whole, cl_mem_flags{1} << 40, error));
  EXPECT_CREATE("clCreateSubBuffer.alloc_flag", CL_INVALID_VALUE,
                create(whole, CL_MEM_ALLOC_HOST_PTR, error));
  EXPECT_CREATE("clCreateSubBuffer.use_flag", CL_INVALID_VALUE,
                create(whole, CL_MEM_USE_HOST_PTR, error));
  EXPECT_CREATE("clCreateSubBuffer.copy_flag", CL_INVALID_VALUE,
                create(whole, CL_MEM_COPY_HOST_PTR, error));
  const Own<cl_mem> read_only = Buffer(align, CL_MEM_READ_ONLY);
  EXPECT_CREATE("clCreateSubBuffer.widen_read", CL_INVALID_VALUE,
                create(read_only, CL_MEM_READ_WRITE, error));
  EXPECT_CREATE("clCreateSubBuffer.read_to_write", CL_INVALID_VALUE,
                create(read_only, CL_MEM_WRITE_ONLY, error));
  const Own<cl_mem> write_only = Buffer(align, CL_MEM_WRITE_ONLY);
  EXPECT_CREATE("clCreateSubBuffer.write_to_read", CL_INVALID_VALUE,
                create(write_only, CL_MEM_READ_ONLY, error));
  const Own<cl_mem> host_write = Buffer(align, CL_MEM_HOST_WRITE_ONLY);
  EXPECT_CREATE("clCreateSubBuffer.host_write_to_read", CL_INVALID_VALUE,
                create(host_write, CL_MEM_HOST_READ_ONLY, error));
  const Own<cl_mem> host_none = Buffer(align, CL_MEM_HOST_NO_ACCESS);
  EXPECT_CREATE("clCreateSubBuffer.host_none_to_read", CL_INVALID_VALUE,
                create(host_none, CL_MEM_HOST_READ_ONLY, error));
}

// Reads and writes of a sub-buffer are bounded by it, not by its parent.
TEST_F(SubBufferTest, TransfersAreBoundedByThePart) {
  const size_t align = Alignment();
  const Own<cl_mem> parent = Buffer(align * 4);
  const Own<cl_mem> part = Part(parent, align, align);
  std::vector<char> host(align * 2);
  EXPECT_CL(
      "clEnqueueReadBuffer.past_sub_buffer", CL_INVALID_VALUE,
      clEnqueueReadBuffer(queue(), part, CL_TRUE, 0, align + 1, host.data(), 0, nullptr, nullptr));
  EXPECT_CL(
      "clEnqueueWriteBuffer.past_sub_buffer", CL_INVALID_VALUE,
      clEnqueueWriteBuffer(queue(), part, CL_TRUE, 1, align, host.data(), 0, nullptr, nullptr));
}

// A part's own host access binds its transfers, whatever the parent's.
TEST_F(SubBufferTest, HostAccessOfThePart) {
  const size_t align = Alignment();
  const Own<cl_mem> parent = Buffer(align * 4);
  const Own<cl_mem> closed = Part(parent, align, align, CL_MEM_HOST_NO_ACCESS);
  std::vector<char> host(align);
  EXPECT_CL(
      "clEnqueueReadBuffer.closed_part", CL_INVALID_OPERATION,
      clEnqueueReadBuffer(queue(), closed, CL_TRUE, 0, align, host.data(), 0, nullptr, nullptr));
  EXPECT_CL(
      "clEnqueueReadBuffer.open_parent", CL_SUCCESS,
      clEnqueueReadBuffer(queue(), parent, CL_TRUE, 0, align, host.data(), 0, nullptr, nullptr));
}

// Rectangles are copied between parts of two buffers, and of one, and between a part and a whole.
TEST_F(SubBufferTest, RectanglesOfParts) {
  const size_t align = Alignment();
  const size_t size = align * 4;
  if (!MayRun("clEnqueueCopyBufferRect.part")) return;
  std::vector<unsigned char> one(size), two(size);
  std::iota(one.begin(), one.end(), static_cast<unsigned char>(1));
  const Own<cl_mem> parents[] = {BufferOf(one), BufferOf(two)};
  const Own<cl_mem> first = Part(parents[0], align, align);
  const Own<cl_mem> second = Part(parents[1], align * 2, align);
  const Own<cl_mem> third = Part(parents[0], align * 3, align);
  // Two rows of three bytes in each of two slices.
  const size_t from[3] = {2, 1, 1}, to[3] = {1, 0, 1}, region[3] = {3, 2, 2};
  const auto copy = [&](cl_mem source, size_t source_begin,
                        std::vector<unsigned char>* source_bytes, cl_mem target,
                        size_t target_begin, std::vector<unsigned char>* target_bytes) {
    EXPECT_CL("clEnqueueCopyBufferRect.part", CL_SUCCESS,
              clEnqueueCopyBufferRect(queue(), source, target, from, to, region, 8, 24, 8, 24, 0,
                                      nullptr, nullptr));
    for (size_t at = 0; at < 12; ++at) {
      const size_t x = at % 3, y = at / 3 % 2, z = at / 6;
      (*target_bytes)[target_begin + to[0] + x + (to[1] + y) * 8 + (to[2] + z) * 24] =
          (*source_bytes)[source_begin + from[0] + x + (from[1] + y) * 8 + (from[2] + z) * 24];
    }
  };
  copy(first, align, &one, second, align * 2, &two);
  copy(first, align, &one, third, align * 3, &one);
  copy(parents[0], 0, &one, second, align * 2, &two);
  copy(second, align * 2, &two, parents[0], 0, &one);
  Finish();
  EXPECT_TRUE(Read<unsigned char>(parents[0], size) == one);
  EXPECT_TRUE(Read<unsigned char>(parents[1], size) == two);
}

// Rectangles of parts that share bytes may lie beside each other.
TEST_F(SubBufferTest, RectanglesOfOverlappingParts) {
  const size_t align = Alignment();
  const size_t size = align * 4, row = 8, slice = 128;
  if (!MayRun("clEnqueueCopyBufferRect.part")) return;
  std::vector<unsigned char> bytes(size);
  std::iota(bytes.begin(), bytes.end(), static_cast<unsigned char>(1));
  const Own<cl_mem> parent = BufferOf(bytes);
  const Own<cl_mem> part = Part(parent, align, align * 2);
  const Own<cl_mem> whole = Part(parent, 0, size);
  const size_t from[3] = {0, 0, 0}, to[3] = {4, 0, align / slice}, region[3] = {3, 2, 2};
  EXPECT_CL("clEnqueueCopyBufferRect.part", CL_SUCCESS,
            clEnqueueCopyBufferRect(queue(), part, whole, from, to, region, row, slice, row, slice,
                                    0, nullptr, nullptr));
  for (size_t at = 0; at < 12; ++at) {
    const size_t offset = align + at % 3 + at / 3 % 2 * row + at / 6 * slice;
    bytes[offset + 4] = bytes[offset];
  }
  Finish();
  EXPECT_TRUE(Read<unsigned char>(parent, size) == bytes);
}

// Copies between windows of one parent overlap where the parent's bytes do.
TEST_F(SubBufferTest, CopiesBetweenWindowsMayOverlap) {
  const size_t align = Alignment();
  const Own<cl_mem> parent = Buffer(align * 4);
  const Own<cl_mem> first = Part(parent, 0, align * 2);
  const Own<cl_mem> second = Part(parent, align, align * 2);
  EXPECT_CL("clEnqueueCopyBuffer.overlap_through_parent", CL_MEM_COPY_OVERLAP,
            clEnqueueCopyBuffer(queue(), first, second, 0, 0, align * 2, 0, nullptr, nullptr));
  EXPECT_CL("clEnqueueCopyBuffer.beside_through_parent", CL_SUCCESS,
            clEnqueueCopyBuffer(queue(), first, second, 0, 0, align, 0, nullptr, nullptr));
  Finish();
}

// So do rectangles in windows, also where their pitches differ: rows that lie between the other's
// rows are copied.
TEST_F(SubBufferTest, RectanglesOfUnlikePitches) {
  const size_t align = Alignment();
  const size_t half = align / 2;
  const std::vector<unsigned char> before = Counting<unsigned char>(align * 4);
  const Own<cl_mem> parent = BufferOf(before);
  const Own<cl_mem> first = Part(parent, 0, align * 4);
  const Own<cl_mem> second = Part(parent, align, align * 3);
  const size_t zero[3] = {}, region[3] = {half, 2, 1};
  // Two rows, at 0 and 3 times the alignment, to two that are beside each other.
  const auto copy = [&](size_t to) {
    const size_t origin[3] = {to, 0, 0};
    return clEnqueueCopyBufferRect(queue(), first, second, zero, origin, region, align * 3, 0, half,
                                   0, 0, nullptr, nullptr);
  };
  EXPECT_CL("clEnqueueCopyBufferRect.windows_meet", CL_MEM_COPY_OVERLAP, copy(align * 3 / 2));
  if (!MayRun("clEnqueueCopyBufferRect.windows_interleave")) return;
  EXPECT_CL("clEnqueueCopyBufferRect.windows_interleave", CL_SUCCESS, copy(0));
  Finish();
  std::vector<unsigned char> expected = before;
  std::copy_n(before.begin(), half, expected.begin() + static_cast<ptrdiff_t>(align));
  std::copy_n(before.begin() + static_cast<ptrdiff_t>(align * 3), half,
              expected.begin() + static_cast<ptrdiff_t>(align + half));
  EXPECT_TRUE(Read<unsigned char>(parent, align * 4) == expected);
}

}  // namespace
}  // namespace sluice::conformance
