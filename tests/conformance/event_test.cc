// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "tests/conformance/harness/fixtures.h"
#include "tests/conformance/harness/watchdog.h"

namespace sluice::conformance {
namespace {

using EventTest = WithProgram;

template <typename T>
T EventInfo(cl_event event, cl_event_info param) {
  T value{};
  size_t bytes = 0;
  EXPECT_CL("clGetEventInfo.plain", CL_SUCCESS,
            clGetEventInfo(event, param, sizeof(value), &value, &bytes));
  EXPECT_EQ(bytes, sizeof(value));
  return value;
}

// A user event is submitted until it is set, and belongs to no queue.
TEST_F(EventTest, UserEventStartsSubmitted) {
  const Own<cl_event> event = MAKE("clCreateUserEvent.plain", clCreateUserEvent(context(), error));
  EXPECT_EQ(StatusOf(event), CL_SUBMITTED);
  EXPECT_EQ(EventInfo<cl_command_queue>(event, CL_EVENT_COMMAND_QUEUE), nullptr);
  EXPECT_EQ(EventInfo<cl_context>(event, CL_EVENT_CONTEXT), context());
  EXPECT_EQ(EventInfo<cl_command_type>(event, CL_EVENT_COMMAND_TYPE),
            static_cast<cl_command_type>(CL_COMMAND_USER));
  EXPECT_EQ(EventInfo<cl_uint>(event, CL_EVENT_REFERENCE_COUNT), 1u);
  EXPECT_CL("clSetUserEventStatus.complete", CL_SUCCESS, clSetUserEventStatus(event, CL_COMPLETE));
  EXPECT_EQ(StatusOf(event), CL_COMPLETE);
  EXPECT_CL("clWaitForEvents.user_event", CL_SUCCESS, clWaitForEvents(1, event.AsList()));
}

// A user event is set once, to complete or to an error, and only user events are set.
TEST_F(EventTest, SetUserEventRefusals) {
  const Own<cl_event> event = UserEvent();
  EXPECT_CL("clSetUserEventStatus.null", CL_INVALID_EVENT,
            clSetUserEventStatus(nullptr, CL_COMPLETE));
  EXPECT_CL("clSetUserEventStatus.running", CL_INVALID_VALUE,
            clSetUserEventStatus(event, CL_RUNNING));
  EXPECT_CL("clSetUserEventStatus.positive", CL_INVALID_VALUE, clSetUserEventStatus(event, 17));
  ASSERT_EQ(clSetUserEventStatus(event, CL_COMPLETE), CL_SUCCESS);
  EXPECT_CL("clSetUserEventStatus.twice", CL_INVALID_OPERATION,
            clSetUserEventStatus(event, CL_COMPLETE));
  EXPECT_CL("clSetUserEventStatus.error_after_complete", CL_INVALID_OPERATION,
            clSetUserEventStatus(event, -1));
  Own<cl_event> marker;
  ASSERT_EQ(clEnqueueMarkerWithWaitList(queue(), 0, nullptr, marker.Out()), CL_SUCCESS);
  EXPECT_CL("clSetUserEventStatus.not_a_user_event", CL_INVALID_EVENT,
            clSetUserEventStatus(marker, CL_COMPLETE));
  EXPECT_CREATE("clCreateUserEvent.null_context", CL_INVALID_CONTEXT,
                clCreateUserEvent(nullptr, error));
  Finish();
}

// A command waits for its user event and completes after it.
TEST_F(EventTest, UserEventHoldsACommand) {
  const Own<cl_mem> buffer = Buffer(64);
  const Own<cl_event> gate = UserEvent();
  Own<cl_event> write;
  const std::vector<cl_int> values = Counting(16);
  ASSERT_EQ(clEnqueueWriteBuffer(queue(), buffer, CL_FALSE, 0, 64, values.data(), 1, gate.AsList(),
                                 write.Out()),
            CL_SUCCESS);
  ASSERT_EQ(clFlush(queue()), CL_SUCCESS);
  EXPECT_GT(StatusOf(write), CL_COMPLETE);
  ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
  ASSERT_EQ(clWaitForEvents(1, write.AsList()), CL_SUCCESS);
  EXPECT_EQ(StatusOf(write), CL_COMPLETE);
  EXPECT_EQ(Read<cl_int>(buffer, 16), values);
}

// An error on a user event fails the commands that wait for it, and the waits for them.
TEST_F(EventTest, UserEventErrorReachesDependents) {
  const Own<cl_mem> buffer = BufferOf(std::vector<cl_int>(16, 5));
  const Own<cl_event> gate = UserEvent();
  const Own<cl_command_queue> other_queue = Queue();
  const cl_int pattern = 9;
  Own<cl_event> first;
  Own<cl_event> second;
  ASSERT_EQ(clEnqueueFillBuffer(other_queue, buffer, &pattern, sizeof(pattern), 0, 64, 1,
                                gate.AsList(), first.Out()),
            CL_SUCCESS);
  ASSERT_EQ(clEnqueueMarkerWithWaitList(other_queue, 1, first.AsList(), second.Out()), CL_SUCCESS);
  ASSERT_CL("clSetUserEventStatus.error", CL_SUCCESS, clSetUserEventStatus(gate, -42));
  EXPECT_EQ(StatusOf(gate), -42);
  EXPECT_CL("clWaitForEvents.failed_user_event", CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST,
            clWaitForEvents(1, gate.AsList()));
  EXPECT_CL("clWaitForEvents.failed_command", CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST,
            clWaitForEvents(1, first.AsList()));
  EXPECT_CL("clWaitForEvents.failed_dependent", CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST,
            clWaitForEvents(1, second.AsList()));
  EXPECT_LT(StatusOf(first), 0);
  EXPECT_LT(StatusOf(second), 0);
  EXPECT_EQ(Read<cl_int>(buffer, 16), std::vector<cl_int>(16, 5))
      << "the failed fill must not have run";
}

// Transfers and maps, which Sluice does by itself or has the driver do, fail by what they wait for
// with one code, whatever their size and the transport are (PoCL's own is -1).
TEST_F(EventTest, TransfersFailWithOneCode) {
  const bool on_pocl = TheHarness().platform_name.find("Portable Computing") != std::string::npos;
  for (const size_t bytes : {size_t{64}, size_t{1} << 20}) {
    const Own<cl_mem> buffer = Buffer(bytes);
    const Own<cl_command_queue> own = Queue();
    const Own<cl_event> gate = UserEvent();
    std::vector<cl_uchar> host(bytes);
    std::vector<Own<cl_event>> failing(6);
    cl_int code = CL_SUCCESS;
    ASSERT_EQ(clEnqueueWriteBuffer(own, buffer, CL_FALSE, 0, bytes, host.data(), 1, gate.AsList(),
                                   failing[0].Out()),
              CL_SUCCESS);
    ASSERT_EQ(clEnqueueReadBuffer(own, buffer, CL_FALSE, 0, bytes, host.data(), 1, gate.AsList(),
                                  failing[1].Out()),
              CL_SUCCESS);
    void* mapped = clEnqueueMapBuffer(own, buffer, CL_FALSE, CL_MAP_READ | CL_MAP_WRITE, 0, bytes,
                                      1, gate.AsList(), failing[2].Out(), &code);
    ASSERT_EQ(code, CL_SUCCESS);
    ASSERT_EQ(clEnqueueUnmapMemObject(own, buffer, mapped, 1, gate.AsList(), failing[3].Out()),
              CL_SUCCESS);
    mapped = clEnqueueMapBuffer(own, buffer, CL_FALSE, CL_MAP_WRITE_INVALIDATE_REGION, 0, bytes, 1,
                                gate.AsList(), failing[4].Out(), &code);
    ASSERT_EQ(code, CL_SUCCESS);
    // By its place.
    ASSERT_EQ(clEnqueueReadBuffer(own, buffer, CL_FALSE, 0, bytes, host.data(), 0, nullptr,
                                  failing[5].Out()),
              CL_SUCCESS);
    ASSERT_EQ(clSetUserEventStatus(gate, -42), CL_SUCCESS);
    for (size_t i = 0; i < failing.size(); ++i) {
      EXPECT_EQ(clWaitForEvents(1, failing[i].AsList()),
                CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
      EXPECT_LT(StatusOf(failing[i]), 0) << i;
      if (TheHarness().IsSluice() && on_pocl) {
        EXPECT_EQ(StatusOf(failing[i]), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST) << i;
      }
    }
  }
}

// It fails what stands behind it in its queue by place alone, and nothing else.
TEST_F(EventTest, FailedGateIsTheEndOfWhatStandsBehind) {
  if (!MayRun("clSetUserEventStatus.chain_behind")) GTEST_SKIP() << "the driver does not stand it";
  const Own<cl_mem> one = Buffer(64), other = Buffer(64);
  const cl_int pattern = 7;
  for (const bool in_order : {true, false}) {
    if (!in_order && !HasOutOfOrder()) continue;
    const Own<cl_command_queue> own = Queue(in_order ? 0 : CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    const auto fill = [&](cl_mem memory, cl_uint waits, const cl_event* list) {
      return clEnqueueFillBuffer(own, memory, &pattern, sizeof(pattern), 0, 64, waits, list,
                                 nullptr);
    };
    for (int round = 0; round < 20; ++round) {
      const Own<cl_event> gate = UserEvent();
      ASSERT_EQ(in_order ? fill(one, 1, gate.AsList())
                         : clEnqueueBarrierWithWaitList(own, 1, gate.AsList(), nullptr),
                CL_SUCCESS);
      ASSERT_EQ(fill(one, 0, nullptr), CL_SUCCESS);
      ASSERT_EQ(clEnqueueCopyBuffer(own, one, other, 0, 0, 64, 0, nullptr, nullptr), CL_SUCCESS);
      ASSERT_EQ(fill(other, 0, nullptr), CL_SUCCESS);
      ASSERT_EQ(clSetUserEventStatus(gate, -5), CL_SUCCESS);
      clFinish(own);  // Its answer about them is the implementation's.
    }
  }
  // Nothing else of the context has failed.
  ASSERT_EQ(
      clEnqueueFillBuffer(queue(), other, &pattern, sizeof(pattern), 0, 64, 0, nullptr, nullptr),
      CL_SUCCESS);
  EXPECT_EQ(Read<cl_int>(other, 16), std::vector<cl_int>(16, pattern));
}

// A user event fails while other commands that its dependents wait for end. PoCL (3.1) itself
// may abort then ("Assertion `cq->command_count > 0'"): not natively.
TEST_F(EventTest, FailsWhileOthersEnd) {
  if (!TheHarness().IsSluice()) GTEST_SKIP() << "drivers may abort the process";
  Watchdog::Allow(5);  // A round takes 0.1 s by the network to a busy worker under Wine.
  constexpr size_t kBytes = 1 << 20;
  const std::vector<cl_uchar> bytes(kBytes);
  std::vector<cl_uchar> scratch(kBytes);
  const Own<cl_mem> first = Buffer(kBytes), second = Buffer(kBytes);
  const Own<cl_command_queue> other = Queue();
  const auto write = [&](cl_command_queue queue, cl_mem buffer, size_t size, cl_event* event) {
    ASSERT_EQ(
        clEnqueueWriteBuffer(queue, buffer, CL_FALSE, 0, size, bytes.data(), 0, nullptr, event),
        CL_SUCCESS);
  };
  for (int i = 0; i < 600; ++i) {
    const Own<cl_event> gate = UserEvent();
    Own<cl_event> behind, beside, last;
    if (i % 4 == 0) {
      write(other, second, kBytes / 2, beside.Out());
    }
    write(queue(), first, kBytes, nullptr);
    ASSERT_EQ(clEnqueueMarkerWithWaitList(queue(), 1, gate.AsList(), behind.Out()), CL_SUCCESS);
    if (i % 4 == 0) {
      const cl_event both[] = {behind, beside};
      ASSERT_EQ(clEnqueueMarkerWithWaitList(other, 2, both, last.Out()), CL_SUCCESS);
    }
    // Now sooner, now later in what runs.
    std::memmove(scratch.data(), bytes.data(), kBytes / 128 * (i % 128));
    ASSERT_EQ(clSetUserEventStatus(gate, -5), CL_SUCCESS) << i;
    clFinish(queue());
    clFinish(other);
    ASSERT_LT(StatusOf(behind), 0) << i;
    if (i % 4 != 0) continue;
    ASSERT_LT(StatusOf(last), 0) << i;
    if (!Differs("clSetUserEventStatus.queue_goes_on")) {
      ASSERT_EQ(StatusOf(beside), CL_COMPLETE) << i;
    }
  }
}

// With PoCL what has failed by one of two user events no longer depends on the other: the queue
// goes on with what comes later, which waits for something else. (NVIDIA's driver waits for both.)
TEST_F(EventTest, OneOfTwoGatesFails) {
  if (!TheHarness().IsSluice()) GTEST_SKIP() << "drivers may abort the process";
  if (Differs("clSetUserEventStatus.one_of_two")) GTEST_SKIP() << "it fails once both are set";
  const Own<cl_mem> data = BufferOf(std::vector<cl_int>(16, 5));
  const Own<cl_event> first = UserEvent(), second = UserEvent(), third = UserEvent();
  const cl_event both[] = {first, second};
  Own<cl_event> failed, later;
  ASSERT_EQ(clEnqueueMarkerWithWaitList(queue(), 2, both, failed.Out()), CL_SUCCESS);
  ASSERT_EQ(clSetUserEventStatus(first, -5), CL_SUCCESS);
  EXPECT_NE(clWaitForEvents(1, failed.AsList()), CL_SUCCESS);
  const cl_int value = 7;
  ASSERT_EQ(clEnqueueFillBuffer(queue(), data, &value, 4, 0, 64, 1, third.AsList(), later.Out()),
            CL_SUCCESS);
  ASSERT_EQ(clSetUserEventStatus(third, CL_COMPLETE), CL_SUCCESS);
  EXPECT_EQ(clWaitForEvents(1, later.AsList()), CL_SUCCESS);
  ASSERT_EQ(clSetUserEventStatus(second, CL_COMPLETE), CL_SUCCESS);
}

// A blocking call with a failed event in its wait list says so.
TEST_F(EventTest, BlockingCallsReportFailedWaits) {
  const Own<cl_mem> buffer = Buffer(64);
  cl_int host[16] = {};
  const Own<cl_event> failed = UserEvent();
  ASSERT_EQ(clSetUserEventStatus(failed, -7), CL_SUCCESS);
  EXPECT_CL(
      "clEnqueueReadBuffer.failed_wait", CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST,
      clEnqueueReadBuffer(queue(), buffer, CL_TRUE, 0, 64, host, 1, failed.AsList(), nullptr));
  EXPECT_CL(
      "clEnqueueWriteBuffer.failed_wait", CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST,
      clEnqueueWriteBuffer(queue(), buffer, CL_TRUE, 0, 64, host, 1, failed.AsList(), nullptr));
  EXPECT_CREATE("clEnqueueMapBuffer.failed_wait", CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST,
                clEnqueueMapBuffer(queue(), buffer, CL_TRUE, CL_MAP_READ, 0, 64, 1, failed.AsList(),
                                   nullptr, error));
  EXPECT_CL("clFinish.failure_answered_before", CL_SUCCESS, clFinish(queue()));
}

// Wrong waits are refused.
TEST_F(EventTest, WaitRefusals) {
  const Own<cl_event> event = UserEvent();
  const cl_event with_null[] = {event, nullptr};
  EXPECT_CL("clWaitForEvents.none", CL_INVALID_VALUE, clWaitForEvents(0, event.AsList()));
  EXPECT_CL("clWaitForEvents.null_list", CL_INVALID_VALUE, clWaitForEvents(1, nullptr));
  ASSERT_EQ(clSetUserEventStatus(event, CL_COMPLETE), CL_SUCCESS);
  EXPECT_CL("clWaitForEvents.null_event", CL_INVALID_EVENT, clWaitForEvents(2, with_null));
  const Own<cl_context> other = NewContext();
  const Own<cl_event> foreign = MAKE("clCreateUserEvent.foreign", clCreateUserEvent(other, error));
  ASSERT_EQ(clSetUserEventStatus(foreign, CL_COMPLETE), CL_SUCCESS);
  const cl_event mixed[] = {event, foreign};
  EXPECT_CL("clWaitForEvents.two_contexts", CL_INVALID_CONTEXT, clWaitForEvents(2, mixed));
}

// Wrong queries of an event are refused.
TEST_F(EventTest, InfoRefusals) {
  const Own<cl_event> event = UserEvent();
  char value[8];
  EXPECT_CL("clGetEventInfo.unknown", CL_INVALID_VALUE,
            clGetEventInfo(event, 0x7ffe, sizeof(value), value, nullptr));
  EXPECT_CL("clGetEventInfo.too_small", CL_INVALID_VALUE,
            clGetEventInfo(event, CL_EVENT_CONTEXT, 1, value, nullptr));
  EXPECT_CL("clGetEventInfo.null", CL_INVALID_EVENT,
            clGetEventInfo(nullptr, CL_EVENT_CONTEXT, sizeof(value), value, nullptr));
  ASSERT_EQ(clSetUserEventStatus(event, CL_COMPLETE), CL_SUCCESS);
}

// Retain and release count.
TEST_F(EventTest, IsCounted) {
  const Own<cl_event> event = UserEvent();
  EXPECT_CL("clRetainEvent.plain", CL_SUCCESS, clRetainEvent(event));
  EXPECT_EQ(EventInfo<cl_uint>(event, CL_EVENT_REFERENCE_COUNT), 2u);
  EXPECT_CL("clReleaseEvent.plain", CL_SUCCESS, clReleaseEvent(event));
  EXPECT_EQ(EventInfo<cl_uint>(event, CL_EVENT_REFERENCE_COUNT), 1u);
  EXPECT_CL("clRetainEvent.null", CL_INVALID_EVENT, clRetainEvent(nullptr));
  EXPECT_CL("clReleaseEvent.null", CL_INVALID_EVENT, clReleaseEvent(nullptr));
  ASSERT_EQ(clSetUserEventStatus(event, CL_COMPLETE), CL_SUCCESS);
}

// The application may release an event before its command ends; the command still ends, as do its
// dependents.
TEST_F(EventTest, ReleasedEventsStillOrder) {
  const Own<cl_mem> buffer = BufferOf(std::vector<cl_int>(16, 0));
  const Own<cl_kernel> kernel = Kernel("add_one");
  SetArg(kernel, 0, buffer);
  const Own<cl_command_queue> other_queue = Queue();
  Own<cl_event> gate = UserEvent();
  Own<cl_event> first;
  const size_t global = 16;
  ASSERT_EQ(clEnqueueNDRangeKernel(queue(), kernel, 1, nullptr, &global, nullptr, 1, gate.AsList(),
                                   first.Out()),
            CL_SUCCESS);
  Own<cl_event> second;
  ASSERT_EQ(clEnqueueNDRangeKernel(other_queue, kernel, 1, nullptr, &global, nullptr, 1,
                                   first.AsList(), second.Out()),
            CL_SUCCESS);
  first.Reset();
  ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
  gate.Reset();
  // "clReleaseEvent ... the commands in queues must be issued to their devices": flush what the
  // wait below needs.
  ASSERT_EQ(clFlush(queue()), CL_SUCCESS);
  ASSERT_EQ(clWaitForEvents(1, second.AsList()), CL_SUCCESS);
  EXPECT_EQ(Read<cl_int>(buffer, 16), std::vector<cl_int>(16, 2));
}

// Profiling times are in order, and each has its size.
TEST_F(EventTest, ProfilingTimesAreInOrder) {
  const Own<cl_mem> buffer = Buffer(4096);
  const Own<cl_kernel> kernel = Kernel("add_one");
  SetArg(kernel, 0, buffer);
  Own<cl_event> event;
  ASSERT_EQ(Launch(queue(), kernel, 1024, event.Out()), CL_SUCCESS);
  ASSERT_EQ(clWaitForEvents(1, event.AsList()), CL_SUCCESS);
  cl_ulong last = 0;
  for (cl_profiling_info param :
       {CL_PROFILING_COMMAND_QUEUED, CL_PROFILING_COMMAND_SUBMIT, CL_PROFILING_COMMAND_START,
        CL_PROFILING_COMMAND_END, CL_PROFILING_COMMAND_COMPLETE}) {
    SCOPED_TRACE(param);
    cl_ulong time = 0;
    size_t bytes = 0;
    EXPECT_CL("clGetEventProfilingInfo.plain", CL_SUCCESS,
              clGetEventProfilingInfo(event, param, sizeof(time), &time, &bytes));
    EXPECT_EQ(bytes, sizeof(time));
    EXPECT_GE(time, last);
    EXPECT_GT(time, 0u);
    last = time;
  }
}

// Profiling is not there for queues without it, for user events, or before the command's end.
TEST_F(EventTest, ProfilingRefusals) {
  cl_ulong time = 0;
  const auto ask = [&](cl_event event) {
    return clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof(time), &time, nullptr);
  };
  const Own<cl_command_queue> plain = Queue();
  Own<cl_event> unprofiled;
  ASSERT_EQ(clEnqueueMarkerWithWaitList(plain, 0, nullptr, unprofiled.Out()), CL_SUCCESS);
  ASSERT_EQ(clFinish(plain), CL_SUCCESS);
  EXPECT_CL("clGetEventProfilingInfo.queue_without", CL_PROFILING_INFO_NOT_AVAILABLE,
            ask(unprofiled));
  const Own<cl_event> user = UserEvent();
  EXPECT_CL("clGetEventProfilingInfo.user_event", CL_PROFILING_INFO_NOT_AVAILABLE, ask(user));
  Own<cl_event> waiting;
  ASSERT_EQ(clEnqueueMarkerWithWaitList(queue(), 1, user.AsList(), waiting.Out()), CL_SUCCESS);
  EXPECT_CL("clGetEventProfilingInfo.not_complete", CL_PROFILING_INFO_NOT_AVAILABLE, ask(waiting));
  ASSERT_EQ(clSetUserEventStatus(user, CL_COMPLETE), CL_SUCCESS);
  Finish();
  char small[4];
  EXPECT_CL("clGetEventProfilingInfo.unknown", CL_INVALID_VALUE,
            clGetEventProfilingInfo(waiting, 0x7ffe, sizeof(time), &time, nullptr));
  EXPECT_CL(
      "clGetEventProfilingInfo.too_small", CL_INVALID_VALUE,
      clGetEventProfilingInfo(waiting, CL_PROFILING_COMMAND_START, sizeof(small), small, nullptr));
  EXPECT_CL("clGetEventProfilingInfo.null", CL_INVALID_EVENT, ask(nullptr));
}

}  // namespace
}  // namespace sluice::conformance
