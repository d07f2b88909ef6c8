// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "tests/conformance/harness/fixtures.h"

namespace sluice::conformance {
namespace {

// Transfers that a user event holds back. None of the enqueues may wait for anything:
// clSetUserEventStatus is the next call, whatever the size.
class GatingTest : public WithQueue, public testing::WithParamInterface<size_t> {
 protected:
  static std::vector<cl_uint> Pattern(size_t bytes, cl_uint seed) {
    std::vector<cl_uint> values(bytes / sizeof(cl_uint));
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<cl_uint>(i * 2654435761u + seed);
    return values;
  }
  cl_int Write(cl_mem buffer, size_t offset, const std::vector<cl_uint>& values,
               const Own<cl_event>* gate) const {
    return clEnqueueWriteBuffer(queue(), buffer, CL_FALSE, offset, values.size() * sizeof(cl_uint),
                                values.data(), gate == nullptr ? 0 : 1,
                                gate == nullptr ? nullptr : gate->AsList(), nullptr);
  }
  cl_int Read(cl_mem buffer, size_t offset, std::vector<cl_uint>* values, cl_event* event) const {
    return clEnqueueReadBuffer(queue(), buffer, CL_FALSE, offset, values->size() * sizeof(cl_uint),
                               values->data(), 0, nullptr, event);
  }
};

// Gated writes and the reads after them complete once the gate opens, and bring the right bytes.
TEST_P(GatingTest, WritesAndReadsPassTheGate) {
  const size_t bytes = GetParam();
  const Own<cl_mem> buffer = Buffer(bytes * 2);
  const Own<cl_event> gate = UserEvent();
  const std::vector<cl_uint> first = Pattern(bytes, 1), second = Pattern(bytes, 2);
  std::vector<cl_uint> first_back(first.size()), second_back(second.size());
  ASSERT_EQ(Write(buffer, 0, first, &gate), CL_SUCCESS);
  ASSERT_EQ(Write(buffer, bytes, second, nullptr), CL_SUCCESS);
  Own<cl_event> last;
  ASSERT_EQ(Read(buffer, 0, &first_back, nullptr), CL_SUCCESS);
  ASSERT_EQ(Read(buffer, bytes, &second_back, last.Out()), CL_SUCCESS);
  ASSERT_EQ(clFlush(queue()), CL_SUCCESS);
  EXPECT_GT(StatusOf(last), CL_COMPLETE);
  ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
  Finish();
  EXPECT_TRUE(first_back == first);
  EXPECT_TRUE(second_back == second);
}

// The memory of a gated write belongs to OpenCL until the write is complete, so it is read when the
// gate has opened. The bytes that an earlier read of the same queue put there are written.
TEST_P(GatingTest, ReadThenWriteThroughTheSameMemory) {
  if (!MayRun("clEnqueueWriteBuffer.after_pending_read")) {
    GTEST_SKIP() << "see the table of differences";
  }
  const size_t bytes = GetParam();
  const std::vector<cl_uint> values = Pattern(bytes, 3);
  const Own<cl_mem> from = BufferOf(values), to = Buffer(bytes);
  const Own<cl_event> gate = UserEvent();
  std::vector<cl_uint> host(values.size(), 0), back(values.size(), 0);
  ASSERT_EQ(clEnqueueReadBuffer(queue(), from, CL_FALSE, 0, bytes, host.data(), 1, gate.AsList(),
                                nullptr),
            CL_SUCCESS);
  ASSERT_EQ(Write(to, 0, host, nullptr), CL_SUCCESS);
  ASSERT_EQ(Read(to, 0, &back, nullptr), CL_SUCCESS);
  ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
  Finish();
  EXPECT_TRUE(host == values);
  EXPECT_TRUE(back == values);
}

// A gate that fails makes the gated transfers fail; the queue's other work and later work still
// run.
TEST_P(GatingTest, FailedGateFailsTheTransfers) {
  const size_t bytes = GetParam();
  const std::vector<cl_uint> before = Pattern(bytes, 4), after = Pattern(bytes, 5);
  const Own<cl_mem> buffer = BufferOf(before);
  const Own<cl_event> gate = UserEvent();
  const Own<cl_command_queue> gated = Queue();
  std::vector<cl_uint> back(before.size(), 7);
  Own<cl_event> write, read;
  ASSERT_EQ(clEnqueueWriteBuffer(gated, buffer, CL_FALSE, 0, bytes, after.data(), 1, gate.AsList(),
                                 write.Out()),
            CL_SUCCESS);
  ASSERT_EQ(clEnqueueReadBuffer(gated, buffer, CL_FALSE, 0, bytes, back.data(), 1, write.AsList(),
                                read.Out()),
            CL_SUCCESS);
  ASSERT_EQ(clSetUserEventStatus(gate, -5), CL_SUCCESS);
  EXPECT_EQ(clWaitForEvents(1, read.AsList()), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
  EXPECT_LT(StatusOf(write), 0);
  EXPECT_LT(StatusOf(read), 0);
  EXPECT_TRUE(back == std::vector<cl_uint>(before.size(), 7))
      << "a failed read must not touch its destination";
  ASSERT_EQ(Read(buffer, 0, &back, nullptr), CL_SUCCESS);
  Finish();
  EXPECT_TRUE(back == before) << "a failed write must not have happened";
}

// A gated map of a part, the host's work in it, and the unmap, in the order of the calls.
TEST_P(GatingTest, MapsPassTheGate) {
  const size_t bytes = GetParam();
  const std::vector<cl_uint> values = Pattern(bytes, 6);
  const Own<cl_mem> buffer = Buffer(bytes);
  const Own<cl_event> gate = UserEvent();
  ASSERT_EQ(Write(buffer, 0, values, &gate), CL_SUCCESS);
  Own<cl_event> mapped;
  cl_int code = 77;
  void* pointer = clEnqueueMapBuffer(queue(), buffer, CL_FALSE, CL_MAP_READ | CL_MAP_WRITE, 0,
                                     bytes, 0, nullptr, mapped.Out(), &code);
  ASSERT_EQ(code, CL_SUCCESS);
  ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
  ASSERT_EQ(clWaitForEvents(1, mapped.AsList()), CL_SUCCESS);
  EXPECT_EQ(std::memcmp(pointer, values.data(), bytes), 0);
  std::memset(pointer, 0x77, bytes);
  ASSERT_EQ(clEnqueueUnmapMemObject(queue(), buffer, pointer, 0, nullptr, nullptr), CL_SUCCESS);
  std::vector<cl_uint> back(values.size());
  ASSERT_EQ(Read(buffer, 0, &back, nullptr), CL_SUCCESS);
  Finish();
  EXPECT_TRUE(back == std::vector<cl_uint>(values.size(), 0x77777777u));
}

INSTANTIATE_TEST_SUITE_P(Sizes, GatingTest,
                         testing::Values(size_t{1} << 10, size_t{64} << 10, size_t{1} << 20,
                                         size_t{8} << 20, size_t{64} << 20),
                         [](const testing::TestParamInfo<size_t>& info) {
                           return std::to_string(info.param >> 10) + "KiB";
                         });

using GatingManyTest = WithQueue;

// Hundreds of gated transfers of many sizes, together many megabytes, none of which waits.
TEST_F(GatingManyTest, ManyGatedTransfers) {
  constexpr size_t kTransfers = 300;
  const Own<cl_event> gate = UserEvent();
  std::vector<Own<cl_mem>> buffers;
  std::vector<std::vector<cl_uchar>> sent, back;
  for (size_t i = 0; i < kTransfers; ++i) {
    const size_t bytes = 1 + (i * 7919) % (128 << 10);
    buffers.push_back(Buffer(bytes));
    sent.emplace_back(bytes, static_cast<cl_uchar>(i));
    back.emplace_back(bytes, cl_uchar{0});
  }
  for (size_t i = 0; i < kTransfers; ++i) {
    ASSERT_EQ(clEnqueueWriteBuffer(queue(), buffers[i], CL_FALSE, 0, sent[i].size(), sent[i].data(),
                                   i == 0 ? 1 : 0, i == 0 ? gate.AsList() : nullptr, nullptr),
              CL_SUCCESS);
    ASSERT_EQ(clEnqueueReadBuffer(queue(), buffers[i], CL_FALSE, 0, back[i].size(), back[i].data(),
                                  0, nullptr, nullptr),
              CL_SUCCESS);
  }
  ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
  Finish();
  for (size_t i = 0; i < kTransfers; ++i) ASSERT_TRUE(back[i] == sent[i]) << i;
}

// Thousands of small commands behind one gate are accepted, and run when it opens.
TEST_F(GatingManyTest, ManySmallCommandsBehindOneGate) {
  const Own<cl_event> gate = UserEvent();
  const Own<cl_mem> buffer = Buffer(4096 * sizeof(cl_int));
  ASSERT_EQ(clEnqueueMarkerWithWaitList(queue(), 1, gate.AsList(), nullptr), CL_SUCCESS);
  for (cl_int i = 0; i < 4096; ++i) {
    ASSERT_EQ(
        clEnqueueFillBuffer(queue(), buffer, &i, sizeof(i), static_cast<size_t>(i) * sizeof(i),
                            sizeof(i), 0, nullptr, nullptr),
        CL_SUCCESS);
  }
  ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
  EXPECT_EQ(Read<cl_int>(buffer, 4096), Counting(4096));
}

}  // namespace
}  // namespace sluice::conformance
