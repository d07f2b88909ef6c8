// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <random>
#include <utility>

#include "tests/conformance/harness/fixtures.h"

namespace sluice::conformance {
namespace {

class EventDagTest : public WithProgram {
 protected:
  void SetUp() override {
    WithProgram::SetUp();
    if (!HasOutOfOrder()) GTEST_SKIP() << "the device has no out-of-order queues";
    out_of_order_ = Queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  }
  cl_command_queue out_of_order() const { return out_of_order_; }
  // In the queue that is in order.
  void* MapReadOnly(cl_mem buffer) {
    cl_int code = CL_SUCCESS;
    read_only_ = clEnqueueMapBuffer(queue(), buffer, CL_TRUE, CL_MAP_READ, 0, 64, 0, nullptr,
                                    nullptr, &code);
    return code == CL_SUCCESS ? read_only_ : nullptr;
  }
  bool TakesEmptyRanges() const {
    return DeviceString(device(), CL_DEVICE_VERSION).compare(0, 9, "OpenCL 3.") == 0;
  }

  void* mapped_ = nullptr;
  void* read_only_ = nullptr;

 private:
  Own<cl_command_queue> out_of_order_;
};

// A chain of dependent launches on an out-of-order queue runs in the order of the chain.
TEST_F(EventDagTest, ChainKeepsItsOrder) {
  const Own<cl_mem> data = BufferOf(std::vector<cl_int>(16, 0));
  const Own<cl_kernel> kernel = Kernel("add_one");
  SetArg(kernel, 0, data);
  const size_t global = 16;
  Own<cl_event> last;
  for (int i = 0; i < 300; ++i) {
    Own<cl_event> next;
    ASSERT_EQ(clEnqueueNDRangeKernel(out_of_order(), kernel, 1, nullptr, &global, nullptr,
                                     last.get() == nullptr ? 0 : 1,
                                     last.get() == nullptr ? nullptr : last.AsList(), next.Out()),
              CL_SUCCESS);
    last = std::move(next);
  }
  ASSERT_EQ(clFlush(out_of_order()), CL_SUCCESS);
  ASSERT_EQ(clWaitForEvents(1, last.AsList()), CL_SUCCESS);
  EXPECT_EQ(Read<cl_int>(data, 16), std::vector<cl_int>(16, 300));
}

// A diamond: two branches wait for one command, and the join waits for both, over two queues.
TEST_F(EventDagTest, DiamondOverTwoQueues) {
  const Own<cl_mem> source = BufferOf(std::vector<cl_int>(64, 5));
  const Own<cl_mem> left = Buffer(256), right = Buffer(256), join = Buffer(512);
  const Own<cl_event> gate = UserEvent();
  Own<cl_event> top, a, b, end;
  const cl_int pattern = 7;
  ASSERT_EQ(clEnqueueFillBuffer(out_of_order(), source, &pattern, sizeof(pattern), 0, 256, 1,
                                gate.AsList(), top.Out()),
            CL_SUCCESS);
  ASSERT_EQ(clEnqueueCopyBuffer(out_of_order(), source, left, 0, 0, 256, 1, top.AsList(), a.Out()),
            CL_SUCCESS);
  ASSERT_EQ(clEnqueueCopyBuffer(queue(), source, right, 0, 0, 256, 1, top.AsList(), b.Out()),
            CL_SUCCESS);
  const cl_event both[] = {a, b};
  Own<cl_event> part;
  ASSERT_EQ(clEnqueueCopyBuffer(out_of_order(), left, join, 0, 0, 256, 2, both, part.Out()),
            CL_SUCCESS);
  const cl_event three[] = {a, b, part};
  ASSERT_EQ(clEnqueueCopyBuffer(out_of_order(), right, join, 0, 256, 256, 3, three, end.Out()),
            CL_SUCCESS);
  ASSERT_EQ(clFlush(out_of_order()), CL_SUCCESS);
  ASSERT_EQ(clFlush(queue()), CL_SUCCESS);
  ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
  ASSERT_EQ(clWaitForEvents(1, end.AsList()), CL_SUCCESS);
  EXPECT_EQ(Read<cl_int>(join, 128), std::vector<cl_int>(128, 7));
}

// A random graph of increments, each waiting for earlier ones that touch its cell, gives the sums
// of a serial run.
TEST_F(EventDagTest, RandomGraphGivesSerialResults) {
  constexpr size_t kCells = 8, kCommands = 200;
  const Own<cl_mem> data = BufferOf(std::vector<cl_int>(kCells, 0));
  const Own<cl_kernel> kernel = Kernel("add_one");
  SetArg(kernel, 0, data);
  std::mt19937 random(4711);
  std::vector<Own<cl_event>> last(kCells);
  std::vector<Own<cl_event>> all;
  std::vector<cl_int> expected(kCells, 0);
  const Own<cl_event> gate = UserEvent();
  for (size_t i = 0; i < kCommands; ++i) {
    const size_t cell = random() % kCells;
    const size_t one = 1;
    std::vector<cl_event> waits = {gate};
    if (last[cell].get() != nullptr) waits.push_back(last[cell]);
    if (!all.empty()) waits.push_back(all[random() % all.size()]);
    Own<cl_event> event;
    ASSERT_EQ(clEnqueueNDRangeKernel(out_of_order(), kernel, 1, &cell, &one, nullptr,
                                     static_cast<cl_uint>(waits.size()), waits.data(), event.Out()),
              CL_SUCCESS);
    clRetainEvent(event);
    last[cell] = Own<cl_event>(event.get());
    all.push_back(std::move(event));
    ++expected[cell];
  }
  ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
  ASSERT_EQ(clFinish(out_of_order()), CL_SUCCESS);
  EXPECT_EQ(Read<cl_int>(data, kCells), expected);
}

// A marker with no wait list completes after all that came before; a barrier holds back all that
// comes after.
TEST_F(EventDagTest, MarkersAndBarriersOrder) {
  const Own<cl_mem> data = BufferOf(std::vector<cl_int>(16, 0));
  const Own<cl_event> gate = UserEvent();
  const cl_int one = 1, two = 2;
  Own<cl_event> marker;
  ASSERT_EQ(clEnqueueFillBuffer(out_of_order(), data, &one, sizeof(one), 0, 64, 1, gate.AsList(),
                                nullptr),
            CL_SUCCESS);
  ASSERT_CL("clEnqueueMarkerWithWaitList.all_before", CL_SUCCESS,
            clEnqueueMarkerWithWaitList(out_of_order(), 0, nullptr, marker.Out()));
  ASSERT_CL("clEnqueueBarrierWithWaitList.all_before", CL_SUCCESS,
            clEnqueueBarrierWithWaitList(out_of_order(), 0, nullptr, nullptr));
  Own<cl_event> after;
  ASSERT_EQ(
      clEnqueueFillBuffer(out_of_order(), data, &two, sizeof(two), 0, 32, 0, nullptr, after.Out()),
      CL_SUCCESS);
  ASSERT_EQ(clFlush(out_of_order()), CL_SUCCESS);
  EXPECT_GT(StatusOf(marker), CL_COMPLETE);
  EXPECT_GT(StatusOf(after), CL_COMPLETE);
  ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
  ASSERT_EQ(clFinish(out_of_order()), CL_SUCCESS);
  std::vector<cl_int> expected(16, 1);
  std::fill_n(expected.begin(), 8, 2);
  EXPECT_EQ(Read<cl_int>(data, 16), expected);
}

// Markers and barriers refuse what every enqueue refuses.
TEST_F(EventDagTest, MarkerAndBarrierRefusals) {
  const cl_event none = nullptr;
  EXPECT_CL("clEnqueueMarkerWithWaitList.null_queue", CL_INVALID_COMMAND_QUEUE,
            clEnqueueMarkerWithWaitList(nullptr, 0, nullptr, nullptr));
  EXPECT_CL("clEnqueueMarkerWithWaitList.null_event", CL_INVALID_EVENT_WAIT_LIST,
            clEnqueueMarkerWithWaitList(out_of_order(), 1, &none, nullptr));
  EXPECT_CL("clEnqueueBarrierWithWaitList.null_queue", CL_INVALID_COMMAND_QUEUE,
            clEnqueueBarrierWithWaitList(nullptr, 0, nullptr, nullptr));
  EXPECT_CL("clEnqueueBarrierWithWaitList.null_event", CL_INVALID_EVENT_WAIT_LIST,
            clEnqueueBarrierWithWaitList(out_of_order(), 1, &none, nullptr));
}

// A command that waits for nothing is not held up by one that waits for a user event.
TEST_F(EventDagTest, IndependentCommandsOvertake) {
  const Own<cl_mem> held = Buffer(64), free = BufferOf(std::vector<cl_int>(16, 0));
  const Own<cl_event> gate = UserEvent();
  const cl_int pattern = 3;
  ASSERT_EQ(clEnqueueFillBuffer(out_of_order(), held, &pattern, sizeof(pattern), 0, 64, 1,
                                gate.AsList(), nullptr),
            CL_SUCCESS);
  std::vector<cl_int> back(16, 0);
  ASSERT_EQ(
      clEnqueueFillBuffer(queue(), free, &pattern, sizeof(pattern), 0, 64, 0, nullptr, nullptr),
      CL_SUCCESS);
  EXPECT_EQ(Read<cl_int>(free, 16), std::vector<cl_int>(16, 3)) << "another queue";
  if (MayRun("clEnqueueReadBuffer.overtakes_held")) {
    EXPECT_CL("clEnqueueReadBuffer.overtakes_held", CL_SUCCESS,
              clEnqueueReadBuffer(out_of_order(), free, CL_TRUE, 0, 64, back.data(), 0, nullptr,
                                  nullptr));
    EXPECT_EQ(back, std::vector<cl_int>(16, 3)) << "the same queue, out of order";
  }
  ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
  ASSERT_EQ(clFinish(out_of_order()), CL_SUCCESS);
}

// A command with a wait list waits for that, and not for one before it in a queue out of order that
// waits for something else. So do those that move nothing, for which something else may stand in.
TEST_F(EventDagTest, CommandsWaitForTheirListOnly) {
  if (!MayRun("clWaitForEvents.list_only")) GTEST_SKIP() << "see the table of differences";
  const Own<cl_mem> held = Buffer(64), data = BufferOf(std::vector<cl_int>(1024, 5));
  const Own<cl_kernel> kernel = Kernel("add_one");
  SetArg(kernel, 0, data);
  const cl_int pattern = 3;
  const auto map = [&](cl_map_flags flags, cl_uint waits, const cl_event* list, cl_event* event) {
    cl_int code = CL_SUCCESS;
    mapped_ = clEnqueueMapBuffer(out_of_order(), data, CL_FALSE, flags, 0, 4096, waits, list, event,
                                 &code);
    return code;
  };
  // An unmap knows of the map before it by itself: it is enqueued in the queue that is idle.
  ASSERT_NE(MapReadOnly(data), nullptr);
  using Enqueue = std::function<cl_int(const cl_event* list, cl_event* event)>;
  std::vector<std::pair<const char*, Enqueue>> all = {
      {"a map without contents",
       [&](const cl_event* list, cl_event* event) {
         return map(CL_MAP_WRITE_INVALIDATE_REGION, 1, list, event);
       }},
      {"its unmap",
       [&](const cl_event* list, cl_event* event) {
         return clEnqueueUnmapMemObject(out_of_order(), data, mapped_, 1, list, event);
       }},
      {"the unmap of what was not written",
       [&](const cl_event* list, cl_event* event) {
         return clEnqueueUnmapMemObject(out_of_order(), data, read_only_, 1, list, event);
       }},
  };
  if (TakesEmptyRanges()) {
    all.emplace_back("a launch without work", [&](const cl_event* list, cl_event* event) {
      const size_t none = 0;
      return clEnqueueNDRangeKernel(out_of_order(), kernel, 1, nullptr, &none, nullptr, 1, list,
                                    event);
    });
  }
  const Own<cl_event> gate = UserEvent();
  Own<cl_event> behind_gate;
  ASSERT_EQ(clEnqueueFillBuffer(out_of_order(), held, &pattern, sizeof(pattern), 0, 64, 1,
                                gate.AsList(), behind_gate.Out()),
            CL_SUCCESS);
  for (const auto& [what, enqueue] : all) {
    SCOPED_TRACE(what);
    const Own<cl_event> own = UserEvent();
    Own<cl_event> ended;
    ASSERT_EQ(enqueue(own.AsList(), ended.Out()), CL_SUCCESS);
    ASSERT_EQ(clFlush(out_of_order()), CL_SUCCESS);
    EXPECT_GT(StatusOf(ended), CL_COMPLETE);
    ASSERT_EQ(clSetUserEventStatus(own, CL_COMPLETE), CL_SUCCESS);
    ASSERT_EQ(clWaitForEvents(1, ended.AsList()), CL_SUCCESS);  // The watchdog ends a hang.
  }
  EXPECT_GT(StatusOf(behind_gate), CL_COMPLETE);
  ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
  ASSERT_EQ(clFinish(out_of_order()), CL_SUCCESS);
}

// On an in-order queue a held command holds all that follow it.
TEST_F(EventDagTest, InOrderQueuesStayInOrder) {
  const Own<cl_mem> data = BufferOf(std::vector<cl_int>(16, 0));
  const Own<cl_event> gate = UserEvent();
  const cl_int one = 1, two = 2;
  Own<cl_event> second;
  ASSERT_EQ(clEnqueueFillBuffer(queue(), data, &one, sizeof(one), 0, 64, 1, gate.AsList(), nullptr),
            CL_SUCCESS);
  ASSERT_EQ(clEnqueueFillBuffer(queue(), data, &two, sizeof(two), 0, 64, 0, nullptr, second.Out()),
            CL_SUCCESS);
  ASSERT_EQ(clFlush(queue()), CL_SUCCESS);
  EXPECT_GT(StatusOf(second), CL_COMPLETE);
  ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
  EXPECT_EQ(Read<cl_int>(data, 16), std::vector<cl_int>(16, 2));
}

// Events of one queue order commands of another.
TEST_F(EventDagTest, QueuesWaitForEachOther) {
  const Own<cl_mem> data = BufferOf(std::vector<cl_int>(16, 0));
  const Own<cl_kernel> kernel = Kernel("add_one");
  SetArg(kernel, 0, data);
  const Own<cl_command_queue> queues[3] = {Queue(), Queue(), Queue()};
  const size_t global = 16;
  Own<cl_event> last;
  for (int i = 0; i < 90; ++i) {
    Own<cl_event> next;
    const bool first = last.get() == nullptr;
    ASSERT_EQ(clEnqueueNDRangeKernel(queues[i % 3], kernel, 1, nullptr, &global, nullptr,
                                     first ? 0 : 1, first ? nullptr : last.AsList(), next.Out()),
              CL_SUCCESS);
    ASSERT_EQ(clFlush(queues[i % 3]), CL_SUCCESS);
    last = std::move(next);
  }
  ASSERT_EQ(clWaitForEvents(1, last.AsList()), CL_SUCCESS);
  EXPECT_EQ(Read<cl_int>(data, 16), std::vector<cl_int>(16, 90));
}

}  // namespace
}  // namespace sluice::conformance
