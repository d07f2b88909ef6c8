// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <thread>

#include "tests/conformance/harness/fixtures.h"

namespace sluice::conformance {
namespace {

using EventCallbackTest = WithProgram;

struct Seen {
  std::atomic<int> calls{0};
  std::atomic<cl_int> status{77};
  std::atomic<cl_event> event{nullptr};
};

void CL_CALLBACK Note(cl_event event, cl_int status, void* data) {
  auto* seen = static_cast<Seen*>(data);
  seen->event = event;
  seen->status = status;
  seen->calls.fetch_add(1);
}

void AwaitCalls(const std::atomic<int>& calls, int count) {
  while (calls.load() < count) std::this_thread::yield();  // The watchdog bounds it.
}

// A callback on completion comes once, with the event and CL_COMPLETE.
TEST_F(EventCallbackTest, CompletionIsTold) {
  Seen seen;
  const Own<cl_mem> buffer = Buffer(4096);
  const Own<cl_event> gate = UserEvent();
  const cl_int pattern = 1;
  Own<cl_event> event;
  ASSERT_EQ(clEnqueueFillBuffer(queue(), buffer, &pattern, sizeof(pattern), 0, 4096, 1,
                                gate.AsList(), event.Out()),
            CL_SUCCESS);
  ASSERT_CL("clSetEventCallback.plain", CL_SUCCESS,
            clSetEventCallback(event, CL_COMPLETE, &Note, &seen));
  ASSERT_EQ(clFlush(queue()), CL_SUCCESS);
  EXPECT_EQ(seen.calls.load(), 0);
  ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
  AwaitCalls(seen.calls, 1);
  EXPECT_EQ(seen.status.load(), CL_COMPLETE);
  EXPECT_EQ(seen.event.load(), event.get());
  Finish();
  EXPECT_EQ(seen.calls.load(), 1);
}

// A callback set after completion comes too.
TEST_F(EventCallbackTest, LateRegistrationIsTold) {
  Own<cl_event> event;
  ASSERT_EQ(clEnqueueMarkerWithWaitList(queue(), 0, nullptr, event.Out()), CL_SUCCESS);
  Finish();
  Seen seen;
  ASSERT_CL("clSetEventCallback.late", CL_SUCCESS,
            clSetEventCallback(event, CL_COMPLETE, &Note, &seen));
  AwaitCalls(seen.calls, 1);
  EXPECT_EQ(seen.status.load(), CL_COMPLETE);
}

// Callbacks for submitted and running come before the one for complete, each at most once.
TEST_F(EventCallbackTest, EarlierStatesAreTold) {
  if (!MayRun("clSetEventCallback.unflushed")) GTEST_SKIP() << "see the table of differences";
  Seen submitted, running, complete;
  const Own<cl_event> gate = UserEvent();
  Own<cl_event> event;
  ASSERT_EQ(clEnqueueMarkerWithWaitList(queue(), 1, gate.AsList(), event.Out()), CL_SUCCESS);
  ASSERT_CL("clSetEventCallback.submitted", CL_SUCCESS,
            clSetEventCallback(event, CL_SUBMITTED, &Note, &submitted));
  ASSERT_CL("clSetEventCallback.running", CL_SUCCESS,
            clSetEventCallback(event, CL_RUNNING, &Note, &running));
  ASSERT_EQ(clSetEventCallback(event, CL_COMPLETE, &Note, &complete), CL_SUCCESS);
  ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
  AwaitCalls(complete.calls, 1);
  AwaitCalls(submitted.calls, 1);
  AwaitCalls(running.calls, 1);
  Finish();
  EXPECT_EQ(complete.calls.load(), 1);
  EXPECT_EQ(submitted.calls.load(), 1);
  EXPECT_EQ(running.calls.load(), 1);
}

// Several callbacks on one event all come.
TEST_F(EventCallbackTest, ManyCallbacksOnOneEvent) {
  Seen seen;
  const Own<cl_event> event = UserEvent();
  for (int i = 0; i < 50; ++i)
    ASSERT_EQ(clSetEventCallback(event, CL_COMPLETE, &Note, &seen), CL_SUCCESS);
  ASSERT_EQ(clSetUserEventStatus(event, CL_COMPLETE), CL_SUCCESS);
  AwaitCalls(seen.calls, 50);
}

struct Order {
  std::atomic<int> next{0};
  int seen[64] = {};
  std::atomic<int> noted{0};
};
struct OrderEntry {
  Order* order;
  int number;
};

void CL_CALLBACK NoteOrder(cl_event, cl_int, void* data) {
  auto* entry = static_cast<OrderEntry*>(data);
  entry->order->seen[entry->number] = entry->order->next.fetch_add(1);
  entry->order->noted.fetch_add(1);
}

// Callbacks of commands that depend on each other come in the order of the commands' completion.
TEST_F(EventCallbackTest, DependentCommandsCallBackInOrder) {
  if (!MayRun("clSetEventCallback.order")) GTEST_SKIP() << "see the table of differences";
  constexpr int kCommands = 50;
  Order order;
  std::vector<OrderEntry> entries;
  for (int i = 0; i < kCommands; ++i) entries.push_back({&order, i});
  const Own<cl_event> gate = UserEvent();
  Own<cl_event> last;
  for (int i = 0; i < kCommands; ++i) {
    Own<cl_event> next;
    ASSERT_EQ(
        clEnqueueMarkerWithWaitList(queue(), 1, i == 0 ? gate.AsList() : last.AsList(), next.Out()),
        CL_SUCCESS);
    ASSERT_EQ(clSetEventCallback(next, CL_COMPLETE, &NoteOrder, &entries[static_cast<size_t>(i)]),
              CL_SUCCESS);
    last = std::move(next);
  }
  ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
  AwaitCalls(order.noted, kCommands);
  for (int i = 0; i < kCommands; ++i) EXPECT_EQ(order.seen[i], i);
}

// An error reaches the callback of the user event and of the commands that waited for it.
TEST_F(EventCallbackTest, ErrorsAreTold) {
  if (!MayRun("clSetEventCallback.error_told")) GTEST_SKIP() << "see the table of differences";
  Seen on_user, on_command;
  const Own<cl_event> gate = UserEvent();
  Own<cl_event> event;
  ASSERT_EQ(clEnqueueMarkerWithWaitList(queue(), 1, gate.AsList(), event.Out()), CL_SUCCESS);
  ASSERT_EQ(clSetEventCallback(gate, CL_COMPLETE, &Note, &on_user), CL_SUCCESS);
  ASSERT_EQ(clSetEventCallback(event, CL_COMPLETE, &Note, &on_command), CL_SUCCESS);
  ASSERT_EQ(clSetUserEventStatus(gate, -123), CL_SUCCESS);
  AwaitCalls(on_user.calls, 1);
  AwaitCalls(on_command.calls, 1);
  EXPECT_EQ(on_user.status.load(), -123);
  EXPECT_LT(on_command.status.load(), 0);
}

// Each wrong argument of clSetEventCallback has its code.
TEST_F(EventCallbackTest, Refusals) {
  Seen seen;
  const Own<cl_event> event = UserEvent();
  EXPECT_CL("clSetEventCallback.null_event", CL_INVALID_EVENT,
            clSetEventCallback(nullptr, CL_COMPLETE, &Note, &seen));
  EXPECT_CL("clSetEventCallback.null_function", CL_INVALID_VALUE,
            clSetEventCallback(event, CL_COMPLETE, nullptr, &seen));
  EXPECT_CL("clSetEventCallback.queued", CL_INVALID_VALUE,
            clSetEventCallback(event, CL_QUEUED, &Note, &seen));
  EXPECT_CL("clSetEventCallback.unknown_status", CL_INVALID_VALUE,
            clSetEventCallback(event, 17, &Note, &seen));
  ASSERT_EQ(clSetUserEventStatus(event, CL_COMPLETE), CL_SUCCESS);
}

struct Chain {
  cl_command_queue queue = nullptr;
  cl_mem buffer = nullptr;
  std::atomic<cl_int> enqueued{77};
  std::atomic<cl_event> next{nullptr};
};

void CL_CALLBACK EnqueueMore(cl_event, cl_int, void* data) {
  auto* chain = static_cast<Chain*>(data);
  const cl_int pattern = 2;
  cl_event next = nullptr;
  const cl_int code = clEnqueueFillBuffer(chain->queue, chain->buffer, &pattern, sizeof(pattern), 0,
                                          64, 0, nullptr, &next);
  clFlush(chain->queue);
  chain->enqueued = code;
  chain->next = next;
}

// A callback may enqueue more work.
TEST_F(EventCallbackTest, CallbackEnqueues) {
  const Own<cl_mem> buffer = BufferOf(std::vector<cl_int>(16, 1));
  Chain chain;
  chain.queue = queue();
  chain.buffer = buffer;
  Own<cl_event> event;
  ASSERT_EQ(clEnqueueMarkerWithWaitList(queue(), 0, nullptr, event.Out()), CL_SUCCESS);
  ASSERT_EQ(clSetEventCallback(event, CL_COMPLETE, &EnqueueMore, &chain), CL_SUCCESS);
  ASSERT_EQ(clFlush(queue()), CL_SUCCESS);
  while (chain.next.load() == nullptr) std::this_thread::yield();
  EXPECT_EQ(chain.enqueued.load(), CL_SUCCESS);
  const Own<cl_event> next(chain.next.load());
  EXPECT_EQ(clWaitForEvents(1, next.AsList()), CL_SUCCESS);
  EXPECT_EQ(Read<cl_int>(buffer, 16), std::vector<cl_int>(16, 2));
}

struct Blocking {
  cl_context context = nullptr;
  cl_device_id device = nullptr;
  cl_command_queue queue = nullptr;
  cl_mem buffer = nullptr;
  cl_int value = 0;
  cl_int codes[4] = {77, 77, 77, 77};
  std::atomic<int> calls{0};
};

void CL_CALLBACK BlockInside(cl_event, cl_int, void* data) {
  auto* blocking = static_cast<Blocking*>(data);
  blocking->codes[0] =
      clEnqueueReadBuffer(blocking->queue, blocking->buffer, CL_TRUE, 0, sizeof(blocking->value),
                          &blocking->value, 0, nullptr, nullptr);
  cl_event marker = nullptr;
  blocking->codes[1] = clEnqueueMarkerWithWaitList(blocking->queue, 0, nullptr, &marker);
  blocking->codes[2] = clWaitForEvents(1, &marker);
  clReleaseEvent(marker);
  blocking->codes[3] = clFinish(blocking->queue);
  blocking->calls.fetch_add(1);
}

// A callback may wait: blocking reads, waits for events and finish. The specification leaves this
// undefined, Sluice promises it.
TEST_F(EventCallbackTest, CallbackBlocks) {
  if (!MayRun("clSetEventCallback.unflushed")) GTEST_SKIP() << "see the table of differences";
  if (!MayRun("clSetEventCallback.blocking_calls")) GTEST_SKIP() << "see the table of differences";
  const Own<cl_mem> buffer = BufferOf(std::vector<cl_int>(16, 99));
  Blocking blocking;
  blocking.queue = queue();
  blocking.buffer = buffer;
  const Own<cl_event> gate = UserEvent();
  Own<cl_event> event;
  ASSERT_EQ(clEnqueueMarkerWithWaitList(queue(), 1, gate.AsList(), event.Out()), CL_SUCCESS);
  ASSERT_EQ(clSetEventCallback(event, CL_COMPLETE, &BlockInside, &blocking), CL_SUCCESS);
  ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
  AwaitCalls(blocking.calls, 1);
  EXPECT_EQ(blocking.value, 99);
  for (cl_int code : blocking.codes) EXPECT_EQ(code, CL_SUCCESS);
}

struct Release {
  cl_event gate = nullptr;
  std::atomic<cl_int> code{77};
  std::atomic<int> calls{0};
};

void CL_CALLBACK OpenGate(cl_event, cl_int, void* data) {
  auto* release = static_cast<Release*>(data);
  release->code = clSetUserEventStatus(release->gate, CL_COMPLETE);
  ++release->calls;
}

// A callback may set a user event that other work waits for.
TEST_F(EventCallbackTest, CallbackSetsAUserEvent) {
  const Own<cl_command_queue> second = Queue();
  const Own<cl_event> gate = UserEvent();
  Release release;
  release.gate = gate;
  Own<cl_event> held;
  ASSERT_EQ(clEnqueueMarkerWithWaitList(second, 1, gate.AsList(), held.Out()), CL_SUCCESS);
  Own<cl_event> first;
  ASSERT_EQ(clEnqueueMarkerWithWaitList(queue(), 0, nullptr, first.Out()), CL_SUCCESS);
  ASSERT_EQ(clSetEventCallback(first, CL_COMPLETE, &OpenGate, &release), CL_SUCCESS);
  ASSERT_EQ(clFlush(queue()), CL_SUCCESS);
  EXPECT_EQ(clWaitForEvents(1, held.AsList()), CL_SUCCESS);
  // The wait may be over before the call inside the callback has returned.
  AwaitCalls(release.calls, 1);
  EXPECT_EQ(release.code.load(), CL_SUCCESS);
}

// Finish returns only when every command is complete, but not necessarily its callbacks; those
// still come, and the event handle stays usable inside them although the application released it.
TEST_F(EventCallbackTest, ReleasedEventsStillCallBack) {
  Seen seen;
  {
    Own<cl_event> event;
    ASSERT_EQ(clEnqueueMarkerWithWaitList(queue(), 0, nullptr, event.Out()), CL_SUCCESS);
    ASSERT_EQ(clSetEventCallback(event, CL_COMPLETE, &Note, &seen), CL_SUCCESS);
  }
  Finish();
  AwaitCalls(seen.calls, 1);
  EXPECT_EQ(seen.status.load(), CL_COMPLETE);
}

}  // namespace
}  // namespace sluice::conformance
