// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "tests/conformance/harness/fixtures.h"

namespace sluice::conformance {
namespace {

class BufferTransferTest : public WithQueue {
 protected:
  // A buffer of another context.
  void SetUp() override {
    WithQueue::SetUp();
    other_ = NewContext();
    foreign_ = MAKE("clCreateBuffer.foreign",
                    clCreateBuffer(other_, CL_MEM_READ_WRITE, 64, nullptr, error));
  }
  cl_mem foreign() const { return foreign_; }

 private:
  Own<cl_context> other_;
  Own<cl_mem> foreign_;
};

// Bytes that are written, blocking or not, are read back at every size from one byte to several
// megabytes.
TEST_F(BufferTransferTest, WritesComeBackAtEverySize) {
  for (size_t bytes : {size_t{1}, size_t{3}, size_t{64}, size_t{4095}, size_t{4096}, size_t{65537},
                       size_t{1} << 20, (size_t{5} << 20) + 13}) {
    SCOPED_TRACE(bytes);
    std::vector<unsigned char> sent(bytes);
    for (size_t i = 0; i < bytes; ++i) sent[i] = static_cast<unsigned char>(i * 31 + i / 251);
    const Own<cl_mem> buffer = Buffer(bytes);
    for (cl_bool blocking : {CL_TRUE, CL_FALSE}) {
      std::vector<unsigned char> back(bytes + 1, 0xee);
      EXPECT_CL("clEnqueueWriteBuffer.plain", CL_SUCCESS,
                clEnqueueWriteBuffer(queue(), buffer, blocking, 0, bytes, sent.data(), 0, nullptr,
                                     nullptr));
      EXPECT_CL("clEnqueueReadBuffer.plain", CL_SUCCESS,
                clEnqueueReadBuffer(queue(), buffer, blocking, 0, bytes, back.data(), 0, nullptr,
                                    nullptr));
      Finish();
      EXPECT_EQ(back.back(), 0xee) << "read past the end";
      back.pop_back();
      EXPECT_TRUE(back == sent);
      sent[bytes / 2] ^= 0x55;
    }
  }
}

// Parts at odd offsets go where they belong and leave the rest alone.
TEST_F(BufferTransferTest, PartsLandAtTheirOffsets) {
  std::vector<unsigned char> model(1000, 1);
  const Own<cl_mem> buffer = BufferOf(model);
  const std::vector<unsigned char> part(77, 9);
  ASSERT_EQ(clEnqueueWriteBuffer(queue(), buffer, CL_FALSE, 133, part.size(), part.data(), 0,
                                 nullptr, nullptr),
            CL_SUCCESS);
  std::copy(part.begin(), part.end(), model.begin() + 133);
  EXPECT_EQ(Read<unsigned char>(buffer, model.size()), model);
  EXPECT_EQ(Read<unsigned char>(buffer, 100, 100),
            std::vector<unsigned char>(model.begin() + 100, model.begin() + 200));
}

// A non-blocking read, then a write from the same host memory: the write must see what the read
// brought.
TEST_F(BufferTransferTest, ReadThenWriteFromTheSameMemory) {
  if (!MayRun("clEnqueueWriteBuffer.after_pending_read")) {
    GTEST_SKIP() << "see the table of differences";
  }
  for (size_t count : {size_t{16}, size_t{4096}, size_t{1} << 20}) {
    SCOPED_TRACE(count);
    const std::vector<cl_int> values = Counting(count, 3);
    const Own<cl_mem> from = BufferOf(values);
    const Own<cl_mem> to = Buffer(count * sizeof(cl_int));
    std::vector<cl_int> host(count, -1);
    const size_t bytes = count * sizeof(cl_int);
    ASSERT_EQ(
        clEnqueueReadBuffer(queue(), from, CL_FALSE, 0, bytes, host.data(), 0, nullptr, nullptr),
        CL_SUCCESS);
    ASSERT_EQ(
        clEnqueueWriteBuffer(queue(), to, CL_FALSE, 0, bytes, host.data(), 0, nullptr, nullptr),
        CL_SUCCESS);
    EXPECT_EQ(Read<cl_int>(to, count), values);
  }
}

// Writes from one host buffer that changes only after a wait each bring their own contents, in
// order.
TEST_F(BufferTransferTest, WritesKeepTheirOrder) {
  const Own<cl_mem> buffer = Buffer(64 * sizeof(cl_int));
  std::vector<std::vector<cl_int>> sources;
  for (cl_int i = 0; i < 50; ++i) sources.emplace_back(64, i);
  for (const auto& source : sources) {
    ASSERT_EQ(clEnqueueWriteBuffer(queue(), buffer, CL_FALSE, 0, 64 * sizeof(cl_int), source.data(),
                                   0, nullptr, nullptr),
              CL_SUCCESS);
  }
  EXPECT_EQ(Read<cl_int>(buffer, 64), sources.back());
}

// Each wrong argument of a read has its code.
TEST_F(BufferTransferTest, ReadRefusals) {
  const Own<cl_mem> buffer = Buffer(64);
  char host[128];
  EXPECT_CL("clEnqueueReadBuffer.null_queue", CL_INVALID_COMMAND_QUEUE,
            clEnqueueReadBuffer(nullptr, buffer, CL_TRUE, 0, 64, host, 0, nullptr, nullptr));
  EXPECT_CL("clEnqueueReadBuffer.null_buffer", CL_INVALID_MEM_OBJECT,
            clEnqueueReadBuffer(queue(), nullptr, CL_TRUE, 0, 64, host, 0, nullptr, nullptr));
  EXPECT_CL("clEnqueueReadBuffer.foreign_buffer", CL_INVALID_CONTEXT,
            clEnqueueReadBuffer(queue(), foreign(), CL_TRUE, 0, 64, host, 0, nullptr, nullptr));
  EXPECT_CL("clEnqueueReadBuffer.past_end", CL_INVALID_VALUE,
            clEnqueueReadBuffer(queue(), buffer, CL_TRUE, 0, 65, host, 0, nullptr, nullptr));
  EXPECT_CL("clEnqueueReadBuffer.offset_past_end", CL_INVALID_VALUE,
            clEnqueueReadBuffer(queue(), buffer, CL_TRUE, 33, 32, host, 0, nullptr, nullptr));
  EXPECT_CL("clEnqueueReadBuffer.wraps", CL_INVALID_VALUE,
            clEnqueueReadBuffer(queue(), buffer, CL_TRUE, ~size_t{0} - 15, 32, host, 0, nullptr,
                                nullptr));
  EXPECT_CL("clEnqueueReadBuffer.null_pointer", CL_INVALID_VALUE,
            clEnqueueReadBuffer(queue(), buffer, CL_TRUE, 0, 64, nullptr, 0, nullptr, nullptr));
  for (cl_mem_flags flag : {CL_MEM_HOST_WRITE_ONLY, CL_MEM_HOST_NO_ACCESS}) {
    const Own<cl_mem> closed = Buffer(64, flag);
    EXPECT_CL("clEnqueueReadBuffer.host_may_not", CL_INVALID_OPERATION,
              clEnqueueReadBuffer(queue(), closed, CL_TRUE, 0, 64, host, 0, nullptr, nullptr));
  }
}

// Each wrong argument of a write has its code.
TEST_F(BufferTransferTest, WriteRefusals) {
  const Own<cl_mem> buffer = Buffer(64);
  const char host[128] = {};
  EXPECT_CL("clEnqueueWriteBuffer.null_queue", CL_INVALID_COMMAND_QUEUE,
            clEnqueueWriteBuffer(nullptr, buffer, CL_TRUE, 0, 64, host, 0, nullptr, nullptr));
  EXPECT_CL("clEnqueueWriteBuffer.null_buffer", CL_INVALID_MEM_OBJECT,
            clEnqueueWriteBuffer(queue(), nullptr, CL_TRUE, 0, 64, host, 0, nullptr, nullptr));
  EXPECT_CL("clEnqueueWriteBuffer.foreign_buffer", CL_INVALID_CONTEXT,
            clEnqueueWriteBuffer(queue(), foreign(), CL_TRUE, 0, 64, host, 0, nullptr, nullptr));
  EXPECT_CL("clEnqueueWriteBuffer.past_end", CL_INVALID_VALUE,
            clEnqueueWriteBuffer(queue(), buffer, CL_TRUE, 0, 65, host, 0, nullptr, nullptr));
  EXPECT_CL("clEnqueueWriteBuffer.wraps", CL_INVALID_VALUE,
            clEnqueueWriteBuffer(queue(), buffer, CL_TRUE, ~size_t{0} - 15, 32, host, 0, nullptr,
                                 nullptr));
  EXPECT_CL("clEnqueueWriteBuffer.null_pointer", CL_INVALID_VALUE,
            clEnqueueWriteBuffer(queue(), buffer, CL_TRUE, 0, 64, nullptr, 0, nullptr, nullptr));
  for (cl_mem_flags flag : {CL_MEM_HOST_READ_ONLY, CL_MEM_HOST_NO_ACCESS}) {
    const Own<cl_mem> closed = Buffer(64, flag);
    EXPECT_CL("clEnqueueWriteBuffer.host_may_not", CL_INVALID_OPERATION,
              clEnqueueWriteBuffer(queue(), closed, CL_TRUE, 0, 64, host, 0, nullptr, nullptr));
  }
}

// OpenCL 2.1 and later let a transfer of no bytes be a marker; older drivers refuse it. Both must
// do it the same way.
TEST_F(BufferTransferTest, EmptyTransfers) {
  const Own<cl_mem> buffer = Buffer(64);
  char host[4];
  EXPECT_CL("clEnqueueReadBuffer.empty", (AnyOf{CL_SUCCESS, CL_INVALID_VALUE}),
            clEnqueueReadBuffer(queue(), buffer, CL_TRUE, 0, 0, host, 0, nullptr, nullptr));
  EXPECT_CL("clEnqueueWriteBuffer.empty", (AnyOf{CL_SUCCESS, CL_INVALID_VALUE}),
            clEnqueueWriteBuffer(queue(), buffer, CL_TRUE, 0, 0, host, 0, nullptr, nullptr));
}

// Host access flags restrict the host, not the device: copies and fills still work.
TEST_F(BufferTransferTest, HostAccessDoesNotBindTheDevice) {
  const Own<cl_mem> closed = Buffer(64, CL_MEM_HOST_NO_ACCESS);
  const Own<cl_mem> open = Buffer(64);
  const cl_uchar value = 0x42;
  EXPECT_CL("clEnqueueFillBuffer.host_no_access", CL_SUCCESS,
            clEnqueueFillBuffer(queue(), closed, &value, 1, 0, 64, 0, nullptr, nullptr));
  EXPECT_CL("clEnqueueCopyBuffer.host_no_access", CL_SUCCESS,
            clEnqueueCopyBuffer(queue(), closed, open, 0, 0, 64, 0, nullptr, nullptr));
  EXPECT_EQ(Read<cl_uchar>(open, 64), std::vector<cl_uchar>(64, 0x42));
}

// Copies move the bytes asked for, between buffers and within one.
TEST_F(BufferTransferTest, CopiesMoveBytes) {
  const std::vector<cl_int> values = Counting(1024);
  const Own<cl_mem> from = BufferOf(values);
  const Own<cl_mem> to = BufferOf(std::vector<cl_int>(1024, -1));
  EXPECT_CL("clEnqueueCopyBuffer.plain", CL_SUCCESS,
            clEnqueueCopyBuffer(queue(), from, to, 40, 80, 400, 0, nullptr, nullptr));
  std::vector<cl_int> expected(1024, -1);
  std::copy(values.begin() + 10, values.begin() + 110, expected.begin() + 20);
  EXPECT_EQ(Read<cl_int>(to, 1024), expected);
  EXPECT_CL("clEnqueueCopyBuffer.within", CL_SUCCESS,
            clEnqueueCopyBuffer(queue(), from, from, 0, 2048, 2048, 0, nullptr, nullptr));
  const std::vector<cl_int> halves = Read<cl_int>(from, 1024);
  EXPECT_TRUE(std::equal(halves.begin(), halves.begin() + 512, halves.begin() + 512));
}

// Each wrong argument of a copy has its code.
TEST_F(BufferTransferTest, CopyRefusals) {
  const Own<cl_mem> first = Buffer(64);
  const Own<cl_mem> second = Buffer(64);
  EXPECT_CL("clEnqueueCopyBuffer.null_queue", CL_INVALID_COMMAND_QUEUE,
            clEnqueueCopyBuffer(nullptr, first, second, 0, 0, 64, 0, nullptr, nullptr));
  EXPECT_CL("clEnqueueCopyBuffer.null_source", CL_INVALID_MEM_OBJECT,
            clEnqueueCopyBuffer(queue(), nullptr, second, 0, 0, 64, 0, nullptr, nullptr));
  EXPECT_CL("clEnqueueCopyBuffer.null_destination", CL_INVALID_MEM_OBJECT,
            clEnqueueCopyBuffer(queue(), first, nullptr, 0, 0, 64, 0, nullptr, nullptr));
  EXPECT_CL("clEnqueueCopyBuffer.foreign_source", CL_INVALID_CONTEXT,
            clEnqueueCopyBuffer(queue(), foreign(), second, 0, 0, 64, 0, nullptr, nullptr));
  EXPECT_CL("clEnqueueCopyBuffer.foreign_destination", CL_INVALID_CONTEXT,
            clEnqueueCopyBuffer(queue(), first, foreign(), 0, 0, 64, 0, nullptr, nullptr));
  EXPECT_CL("clEnqueueCopyBuffer.past_source", CL_INVALID_VALUE,
            clEnqueueCopyBuffer(queue(), first, second, 32, 0, 33, 0, nullptr, nullptr));
  EXPECT_CL("clEnqueueCopyBuffer.past_destination", CL_INVALID_VALUE,
            clEnqueueCopyBuffer(queue(), first, second, 0, 32, 33, 0, nullptr, nullptr));
  EXPECT_CL(
      "clEnqueueCopyBuffer.wraps", CL_INVALID_VALUE,
      clEnqueueCopyBuffer(queue(), first, second, ~size_t{0} - 7, 0, 16, 0, nullptr, nullptr));
  EXPECT_CL("clEnqueueCopyBuffer.overlap", CL_MEM_COPY_OVERLAP,
            clEnqueueCopyBuffer(queue(), first, first, 0, 16, 32, 0, nullptr, nullptr));
  EXPECT_CL("clEnqueueCopyBuffer.overlap_exact", CL_MEM_COPY_OVERLAP,
            clEnqueueCopyBuffer(queue(), first, first, 16, 16, 32, 0, nullptr, nullptr));
  EXPECT_CL("clEnqueueCopyBuffer.touching", CL_SUCCESS,
            clEnqueueCopyBuffer(queue(), first, first, 0, 32, 32, 0, nullptr, nullptr));
  Finish();
}

// A fill repeats its pattern, of every size that the specification allows, over the part asked for.
TEST_F(BufferTransferTest, FillsRepeatEachPatternSize) {
  for (size_t pattern_bytes : {1, 2, 4, 8, 16, 32, 64, 128}) {
    SCOPED_TRACE(pattern_bytes);
    std::vector<unsigned char> pattern(pattern_bytes);
    for (size_t i = 0; i < pattern_bytes; ++i) pattern[i] = static_cast<unsigned char>(i * 7 + 1);
    std::vector<unsigned char> model(1024, 0xaa);
    const Own<cl_mem> buffer = BufferOf(model);
    EXPECT_CL("clEnqueueFillBuffer.plain", CL_SUCCESS,
              clEnqueueFillBuffer(queue(), buffer, pattern.data(), pattern_bytes, 128, 512, 0,
                                  nullptr, nullptr));
    // "The memory associated with pattern can be reused or freed after the function returns".
    const std::vector<unsigned char> kept = pattern;
    std::fill(pattern.begin(), pattern.end(), 0);
    for (size_t i = 0; i < 512; ++i) model[128 + i] = kept[i % pattern_bytes];
    EXPECT_EQ(Read<unsigned char>(buffer, model.size()), model);
  }
}

// Each wrong argument of a fill has its code.
TEST_F(BufferTransferTest, FillRefusals) {
  const Own<cl_mem> buffer = Buffer(256);
  const char pattern[512] = {};
  EXPECT_CL("clEnqueueFillBuffer.null_queue", CL_INVALID_COMMAND_QUEUE,
            clEnqueueFillBuffer(nullptr, buffer, pattern, 4, 0, 64, 0, nullptr, nullptr));
  EXPECT_CL("clEnqueueFillBuffer.null_buffer", CL_INVALID_MEM_OBJECT,
            clEnqueueFillBuffer(queue(), nullptr, pattern, 4, 0, 64, 0, nullptr, nullptr));
  EXPECT_CL("clEnqueueFillBuffer.foreign_buffer", CL_INVALID_CONTEXT,
            clEnqueueFillBuffer(queue(), foreign(), pattern, 4, 0, 64, 0, nullptr, nullptr));
  EXPECT_CL("clEnqueueFillBuffer.past_end", CL_INVALID_VALUE,
            clEnqueueFillBuffer(queue(), buffer, pattern, 4, 224, 64, 0, nullptr, nullptr));
  EXPECT_CL(
      "clEnqueueFillBuffer.wraps", CL_INVALID_VALUE,
      clEnqueueFillBuffer(queue(), buffer, pattern, 4, ~size_t{0} - 31, 64, 0, nullptr, nullptr));
  EXPECT_CL("clEnqueueFillBuffer.null_pattern", CL_INVALID_VALUE,
            clEnqueueFillBuffer(queue(), buffer, nullptr, 4, 0, 64, 0, nullptr, nullptr));
  EXPECT_CL("clEnqueueFillBuffer.zero_pattern", CL_INVALID_VALUE,
            clEnqueueFillBuffer(queue(), buffer, pattern, 0, 0, 64, 0, nullptr, nullptr));
  EXPECT_CL("clEnqueueFillBuffer.odd_pattern", CL_INVALID_VALUE,
            clEnqueueFillBuffer(queue(), buffer, pattern, 3, 0, 48, 0, nullptr, nullptr));
  EXPECT_CL("clEnqueueFillBuffer.large_pattern", CL_INVALID_VALUE,
            clEnqueueFillBuffer(queue(), buffer, pattern, 256, 0, 256, 0, nullptr, nullptr));
  EXPECT_CL("clEnqueueFillBuffer.offset_not_multiple", CL_INVALID_VALUE,
            clEnqueueFillBuffer(queue(), buffer, pattern, 8, 4, 64, 0, nullptr, nullptr));
  EXPECT_CL("clEnqueueFillBuffer.size_not_multiple", CL_INVALID_VALUE,
            clEnqueueFillBuffer(queue(), buffer, pattern, 8, 0, 60, 0, nullptr, nullptr));
}

}  // namespace
}  // namespace sluice::conformance
