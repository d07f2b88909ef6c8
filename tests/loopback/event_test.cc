// SPDX-License-Identifier: Apache-2.0
// proto/commands/event.proto through the worker.
#include "tests/loopback/harness.h"

namespace sluice::worker {
namespace {

class EventLoopbackTest : public LoopbackTest {
 protected:
  uint64_t Marker(uint64_t queue, const std::vector<uint64_t>& waits = {}) {
    pb::Command command;
    const uint64_t event = On(command.mutable_enqueue_marker()->mutable_on(), queue, waits);
    client_->Send(command);
    return event;
  }
  // As those of acquires and releases.
  uint64_t ListMarker(uint64_t queue, const std::vector<uint64_t>& waits) {
    pb::Command command;
    const uint64_t event = On(command.mutable_enqueue_marker()->mutable_on(), queue, waits);
    command.mutable_enqueue_marker()->set_list_only(true);
    client_->Send(command);
    return event;
  }
  uint64_t Barrier(uint64_t queue, const std::vector<uint64_t>& waits = {}) {
    pb::Command command;
    const uint64_t event = On(command.mutable_enqueue_barrier()->mutable_on(), queue, waits);
    client_->Send(command);
    return event;
  }
  uint64_t LargeWrite(uint64_t queue, uint64_t mem, const std::vector<uint64_t>& waits = {}) {
    pb::Command command;
    pb::EnqueueWriteBuffer& body = *command.mutable_enqueue_write_buffer();
    const uint64_t event = On(body.mutable_on(), queue, waits);
    body.set_mem_id(mem);
    body.set_size(kSize);
    client_->Send(command);
    return event;
  }
  uint64_t Read(uint64_t queue, uint64_t mem, uint64_t size,
                const std::vector<uint64_t>& waits = {}) {
    pb::Command command;
    pb::EnqueueReadBuffer& body = *command.mutable_enqueue_read_buffer();
    const uint64_t event = On(body.mutable_on(), queue, waits);
    body.set_mem_id(mem);
    body.set_size(size);
    client_->Send(command);
    return event;
  }
  void ExpectNothingCompleted() {
    client_->Sync();
    for (const ReceivedReply& received : client_->TakeAll()) {
      EXPECT_FALSE(received.reply.has_completion()) << received.reply.completion().event_id();
      EXPECT_FALSE(received.reply.has_grant());
    }
  }

  static constexpr uint64_t kSize = 100000;
  static constexpr cl_command_queue_properties kOutOfOrder = CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
};

// An unnamed event has its completion, however its command is done, and leaves nothing behind: no
// object, no id that a wait list could name or that could not be used again.
TEST_F(EventLoopbackTest, UnnamedEventsAreNotKept) {
  for (const uint64_t device : {kGpu, kCpu}) {
    const uint64_t context = MakeContext(device);
    const uint64_t queue = MakeQueue(context, device);
    const uint64_t mem = MakeBuffer(context, kSize);
    client_->Sync();
    const size_t before = client_->session().counts.objects;
    pb::Command command;
    pb::EnqueueWriteBuffer& body = *command.mutable_enqueue_write_buffer();
    const uint64_t event = On(body.mutable_on(), queue);
    body.mutable_on()->set_unnamed(true);
    body.set_mem_id(mem);
    body.set_size(4);
    client_->Send(command, "abcd");
    EXPECT_EQ(Completed(event).status(), CL_COMPLETE);
    body.set_size(kSize);
    client_->Send(command);
    EXPECT_EQ(Feed(event, std::string(kSize, 'x')).status(), CL_COMPLETE);
    body.set_mem_id(queue);
    client_->Send(command);
    EXPECT_EQ(Completed(event).status(), CL_INVALID_MEM_OBJECT);
    EXPECT_EQ(Completed(Marker(queue, {event})).status(), CL_INVALID_EVENT_WAIT_LIST);
    client_->Sync();
    EXPECT_EQ(client_->session().counts.objects, before + 1);  // The refused marker's id.
  }
}

// A user event that is released before anybody set it fails what waits for it, which nothing could
// end otherwise; one that was set stays as it was set.
TEST_F(EventLoopbackTest, ForgottenUserEventsFail) {
  const uint64_t context = MakeContext();
  const uint64_t queue = MakeQueue(context);
  const uint64_t forgotten = MakeUserEvent(context);
  const uint64_t first = Marker(queue, {forgotten});
  ExpectNothingCompleted();
  pb::Command command;
  command.mutable_release_object()->set_id(forgotten);
  client_->Send(command);
  EXPECT_LT(Completed(first).status(), 0);
  const uint64_t set = MakeUserEvent(context);
  const uint64_t other = MakeQueue(context);
  const uint64_t second = Marker(other, {set});
  SetUserEvent(set, CL_COMPLETE);
  command.mutable_release_object()->set_id(set);
  client_->Send(command);
  EXPECT_EQ(Completed(second).status(), CL_COMPLETE);
}

// A command that waits for a user event runs when the event is set, and fails when it is set to an
// error.
TEST_F(EventLoopbackTest, UserEventsGateCommands) {
  const uint64_t context = MakeContext();
  const uint64_t queue = MakeQueue(context);
  const uint64_t gate = MakeUserEvent(context);
  const uint64_t marker = Marker(queue, {gate});
  ExpectNothingCompleted();
  SetUserEvent(gate, CL_COMPLETE);
  EXPECT_EQ(Completed(marker).status(), CL_COMPLETE);
  const uint64_t bad = MakeUserEvent(context);
  const uint64_t failing = Marker(queue, {bad});
  SetUserEvent(bad, -17);
  EXPECT_EQ(Completed(failing).status(), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
}

// Where the driver calls back late, nothing waits for it to: not a command, not a transfer's chunk,
// and not a command behind more than a few that are held.
TEST_F(EventLoopbackTest, LateCallbacksAreNotWaitedFor) {
  Start({}, kNvidia);
  fake_->HoldCallbacks();
  const uint64_t context = MakeContext();
  const uint64_t queue = MakeQueue(context);
  const uint64_t gate = MakeUserEvent(context);
  const uint64_t marker = Marker(queue, {gate});
  ExpectNothingCompleted();
  const uint64_t others = MakeQueue(context, kGpu, kOutOfOrder);
  const uint64_t never = MakeUserEvent(context);
  std::vector<uint64_t> held;
  for (int i = 0; i < 100; ++i) held.push_back(Barrier(MakeQueue(context), {never}));
  EXPECT_EQ(Completed(Marker(others)).status(), CL_COMPLETE);
  SetUserEvent(gate, CL_COMPLETE);
  EXPECT_EQ(Completed(marker).status(), CL_COMPLETE);
  const uint64_t mem = MakeBuffer(context, kSize);
  EXPECT_EQ(Feed(LargeWrite(queue, mem), std::string(kSize, 'x')).status(), CL_COMPLETE);
  SetUserEvent(never, -5);
  for (const uint64_t event : held) EXPECT_LT(Completed(event).status(), 0);
  EXPECT_EQ(fake_->held_callbacks(), 0u);
}

// Events that fail through others are found although the driver, as PoCL 3.1, calls nobody back.
TEST_F(EventLoopbackTest, FailuresAreFoundWithoutCallbacks) {
  fake_->set_mute_failures(true);
  const uint64_t context = MakeContext();
  const uint64_t queue = MakeQueue(context, kGpu, kOutOfOrder);
  const uint64_t gate = MakeUserEvent(context);
  std::vector<uint64_t> chain = {Marker(queue, {gate})};
  for (int i = 0; i < 50; ++i) chain.push_back(Marker(queue, {chain.back()}));
  SetUserEvent(gate, -17);
  for (const uint64_t event : chain) EXPECT_LT(Completed(event).status(), 0);
}

// Transfers fail by what they wait for, by their list or their place, with one code, whether the
// worker does them or the driver (PoCL 3.1 says -1); other commands with the driver's.
TEST_F(EventLoopbackTest, TransfersFailWithOneCode) {
  for (const bool mute : {false, true}) {
    if (mute) Start({}, 0, kPoclVersion);
    fake_->set_mute_failures(mute);
    const uint64_t context = MakeContext();
    for (const bool in_order : {true, false}) {
      const uint64_t queue = MakeQueue(context, kGpu, in_order ? 0 : kOutOfOrder);
      const uint64_t mem = MakeBuffer(context, kSize);
      const uint64_t gate = MakeUserEvent(context);
      const std::vector<uint64_t> list = {gate};
      const uint64_t marker = in_order ? Marker(queue, list) : Barrier(queue, list);
      std::vector<uint64_t> failing = {Read(queue, mem, 16, list), Read(queue, mem, kSize, list),
                                       LargeWrite(queue, mem, list), ListMarker(queue, list)};
      failing.push_back(Read(queue, mem, 16, {marker}));
      failing.push_back(LargeWrite(queue, mem, {marker}));
      failing.push_back(Read(queue, mem, 16, {failing[2]}));
      failing.push_back(Read(queue, mem, 16));  // Behind the barrier, or the command before.
      SetUserEvent(gate, -17);
      constexpr cl_int kOurs = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
      for (const uint64_t event : failing) EXPECT_EQ(Completed(event).status(), kOurs);
      EXPECT_EQ(Completed(marker).status(), mute ? -1 : kOurs);
    }
  }
}

// -1 of another driver than PoCL is what the driver says.
TEST_F(EventLoopbackTest, OtherDriversCodesStay) {
  fake_->set_mute_failures(true);
  const uint64_t context = MakeContext();
  const uint64_t queue = MakeQueue(context);
  const uint64_t mem = MakeBuffer(context, kSize);
  const uint64_t gate = MakeUserEvent(context);
  const uint64_t read = Read(queue, mem, 16, {gate});
  SetUserEvent(gate, -17);
  EXPECT_EQ(Completed(read).status(), CL_DEVICE_NOT_FOUND);
}

// A command that is enqueued behind a failed event fails at once: PoCL 3.1 would never end it.
TEST_F(EventLoopbackTest, NothingIsEnqueuedBehindAFailure) {
  const uint64_t context = MakeContext();
  const uint64_t queue = MakeQueue(context);
  const uint64_t gate = MakeUserEvent(context);
  SetUserEvent(gate, -17);
  EXPECT_EQ(Completed(Marker(queue, {gate})).status(),
            CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
  EXPECT_EQ(fake_->behind_failed(), 0);
  // Nor does it fail more than its event.
  client_->Sync();
  for (const ReceivedReply& received : client_->TakeAll())
    EXPECT_FALSE(received.reply.has_late_error());
}

// A marker without a wait list ends after all before it, large transfers included; one with a wait
// list after that only, also when the list had completed before.
TEST_F(EventLoopbackTest, MarkersOfAnOutOfOrderQueue) {
  const uint64_t context = MakeContext();
  const uint64_t queue = MakeQueue(context, kGpu, kOutOfOrder);
  const uint64_t mem = MakeBuffer(context, kSize);
  const uint64_t done = MakeUserEvent(context);
  SetUserEvent(done, CL_COMPLETE);
  const uint64_t write = LargeWrite(queue, mem);
  const uint64_t all = Marker(queue);
  EXPECT_EQ(Completed(Marker(queue, {done})).status(), CL_COMPLETE);
  client_->Sync();
  for (const ReceivedReply& received : client_->TakeAll()) {
    EXPECT_NE(received.reply.completion().event_id(), all);
    if (!received.reply.has_grant()) continue;
    pb::Command chunk;
    chunk.mutable_transfer_chunk()->set_event_id(write);
    chunk.mutable_transfer_chunk()->set_offset(received.reply.grant().offset());
    chunk.mutable_transfer_chunk()->set_size(received.reply.grant().size());
    client_->Send(chunk);
  }
  EXPECT_EQ(Completed(write).status(), CL_COMPLETE);
  EXPECT_EQ(Completed(all).status(), CL_COMPLETE);
}

// A marker that waits for its list only is none of the driver's in a queue out of order, whose own
// may wait for more. A command that waits for all of the queue waits for it all the same.
TEST_F(EventLoopbackTest, ListMarkersOfAnOutOfOrderQueue) {
  for (const bool polls : {false, true}) {
    Start({}, polls ? kNvidia : 0);
    const uint64_t context = MakeContext();
    const uint64_t queue = MakeQueue(context, kGpu, kOutOfOrder);
    const uint64_t first = MakeUserEvent(context), second = MakeUserEvent(context);
    fake_->ClearCalls();
    const uint64_t both = ListMarker(queue, {first, second});
    const uint64_t behind = ListMarker(queue, {both});
    ExpectNothingCompleted();
    EXPECT_EQ(fake_->Count("clEnqueueMarkerWithWaitList"), 0u);
    const uint64_t all = Marker(queue);
    const uint64_t barrier = Barrier(queue);
    const uint64_t barred = ListMarker(queue, {second});
    SetUserEvent(second, CL_COMPLETE);
    ExpectNothingCompleted();
    SetUserEvent(first, CL_COMPLETE);
    for (const uint64_t event : {both, behind, all, barrier, barred})
      EXPECT_EQ(Completed(event).status(), CL_COMPLETE);
    // With all of its list ended there is nothing left to wait for.
    EXPECT_EQ(Completed(ListMarker(queue, {both, behind})).status(), CL_COMPLETE);
    pb::Command finish;
    finish.mutable_finish()->set_queue_id(queue);
    finish.mutable_finish()->set_event_id(client_->NewId());
    client_->Send(finish);
    EXPECT_EQ(Completed(finish.finish().event_id()).status(), CL_COMPLETE);
  }
}

// A command with nothing left of its list to wait for is behind the barrier before it all the same.
TEST_F(EventLoopbackTest, WhatHasWaitedIsBehindBarriers) {
  for (const bool profiling : {false, true}) {
    const uint64_t context = MakeContext();
    const cl_command_queue_properties more = profiling ? CL_QUEUE_PROFILING_ENABLE : 0;
    const uint64_t queue = MakeQueue(context, kGpu, kOutOfOrder | more);
    const uint64_t done = ListMarker(MakeQueue(context, kGpu, kOutOfOrder), {});
    EXPECT_EQ(Completed(done).status(), CL_COMPLETE);
    const uint64_t gate = MakeUserEvent(context);
    const uint64_t barrier = Barrier(queue, {gate});
    const std::vector<uint64_t> behind = {Marker(queue, {done}), Barrier(queue, {done}),
                                          ListMarker(queue, {done}), ListMarker(queue, {})};
    ExpectNothingCompleted();
    SetUserEvent(gate, CL_COMPLETE);
    EXPECT_EQ(Completed(barrier).status(), CL_COMPLETE);
    for (const uint64_t event : behind) EXPECT_EQ(Completed(event).status(), CL_COMPLETE);
  }
}

// Its failure is that of one of the list, at once, though another may never end; and chains of them
// end, however long.
TEST_F(EventLoopbackTest, ListMarkersFailWithTheirList) {
  for (const bool mute : {false, true}) {
    fake_->set_mute_failures(mute);
    const uint64_t context = MakeContext();
    const uint64_t queue = MakeQueue(context, kGpu, kOutOfOrder);
    for (const cl_int end : {-17, CL_COMPLETE}) {
      const uint64_t never = MakeUserEvent(context), gate = MakeUserEvent(context);
      std::vector<uint64_t> chain = {ListMarker(queue, {gate})};
      for (int i = 0; i < 2000; ++i) chain.push_back(ListMarker(queue, {chain.back()}));
      const uint64_t of_two = ListMarker(queue, {never, gate});
      ExpectNothingCompleted();
      SetUserEvent(gate, end);
      const cl_int expected = end < 0 ? CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST : CL_COMPLETE;
      for (const uint64_t event : chain) ASSERT_EQ(Completed(event).status(), expected);
      if (end == CL_COMPLETE) SetUserEvent(never, CL_COMPLETE);
      EXPECT_EQ(Completed(of_two).status(), expected);
    }
  }
}

// A large transfer waits for its list by itself too, and for nothing else of the queue.
TEST_F(EventLoopbackTest, TransfersOfAnOutOfOrderQueue) {
  const uint64_t context = MakeContext();
  const uint64_t queue = MakeQueue(context, kGpu, kOutOfOrder);
  const uint64_t mem = MakeBuffer(context, kSize);
  const uint64_t gate = MakeUserEvent(context);
  EXPECT_EQ(Completed(Read(queue, mem, 16)).status(), CL_COMPLETE);  // It has been filled.
  client_->Sync();
  fake_->ClearCalls();
  const uint64_t write = LargeWrite(queue, mem, {gate});
  ExpectNothingCompleted();
  EXPECT_EQ(fake_->Count("clEnqueueMarkerWithWaitList"), 0u);
  const uint64_t all = Marker(queue);
  ExpectNothingCompleted();
  SetUserEvent(gate, CL_COMPLETE);
  EXPECT_EQ(Feed(write, std::string(kSize, 'x')).status(), CL_COMPLETE);
  EXPECT_EQ(Completed(all).status(), CL_COMPLETE);
}

// The objects that are kept of failed commands for the driver's sake do not outlive their queue and
// context.
TEST_F(EventLoopbackTest, FailuresGoWithTheirContext) {
  for (const std::string version : {kPoclVersion, "OpenCL 3.0"}) {
    Start({}, 0, version);
    client_->Sync();
    const int before = fake_->live_objects();
    for (const cl_int end : {-17, CL_COMPLETE}) {
      const uint64_t context = MakeContext();
      const uint64_t queue = MakeQueue(context, kGpu);
      const uint64_t gate = MakeUserEvent(context);
      const std::vector<uint64_t> events = {Marker(queue, {gate}), Marker(queue, {gate}),
                                            Marker(queue)};
      SetUserEvent(gate, end);
      for (const uint64_t event : events) Completed(event);
      for (const uint64_t id : {events[0], events[1], events[2], gate, queue, context}) {
        pb::Command release;
        release.mutable_release_object()->set_id(id);
        client_->Send(release);
      }
      client_->WaitUntil([&] { return fake_->live_objects() == before; });
    }
  }
}

// A large transfer waits for the barrier before it.
TEST_F(EventLoopbackTest, TransfersWaitForBarriers) {
  const uint64_t context = MakeContext();
  const uint64_t queue = MakeQueue(context, kGpu, kOutOfOrder);
  const uint64_t mem = MakeBuffer(context, kSize);
  const uint64_t gate = MakeUserEvent(context);
  const uint64_t barrier = Barrier(queue, {gate});
  const uint64_t write = LargeWrite(queue, mem);
  ExpectNothingCompleted();
  SetUserEvent(gate, CL_COMPLETE);
  EXPECT_EQ(Completed(barrier).status(), CL_COMPLETE);
  EXPECT_EQ(Feed(write, std::string(kSize, 'x')).status(), CL_COMPLETE);
}

// In an in-order queue completions come in order even if the driver calls back in another.
TEST_F(EventLoopbackTest, CompletionsComeInOrder) {
  const uint64_t context = MakeContext();
  const uint64_t queue = MakeQueue(context);
  fake_->HoldCallbacks();
  std::vector<uint64_t> events;
  for (int i = 0; i < 20; ++i) events.push_back(Marker(queue));
  client_->Sync();
  fake_->ReleaseCallbacks(/*reversed=*/true);
  for (size_t i = 0; i < events.size(); ++i) {
    const ReceivedReply received =
        client_->WaitFor([](const ReceivedReply& r) { return r.reply.has_completion(); });
    EXPECT_EQ(received.reply.completion().event_id(), events[i]);
  }
}

// A driver that takes no callbacks at all is looked after, and what waits for ever there holds
// nobody up that came later.
TEST_F(EventLoopbackTest, DriverWithoutCallbacks) {
  fake_->set_has_callbacks(false);
  const uint64_t context = MakeContext();
  const uint64_t gate = MakeUserEvent(context);
  const uint64_t held = Marker(MakeQueue(context), {gate});
  const uint64_t queue = MakeQueue(context);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(Completed(Marker(queue)).status(), CL_COMPLETE);
  SetUserEvent(gate, CL_COMPLETE);
  EXPECT_EQ(Completed(held).status(), CL_COMPLETE);
}

// A user event in a context that is none fails, and so does what waits for it.
TEST_F(EventLoopbackTest, UserEventWithoutContext) {
  const uint64_t queue = MakeQueue(MakeContext());
  const uint64_t event = MakeUserEvent(4711);
  EXPECT_EQ(Completed(event).status(), CL_INVALID_CONTEXT);
  EXPECT_EQ(Completed(Marker(queue, {event})).status(),
            CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
}

// A command may wait for what has not ended on a queue that is none: it is refused, and the session
// goes on (found by command_fuzzer).
TEST_F(EventLoopbackTest, WaitsOnNoQueue) {
  const uint64_t context = MakeContext();
  const uint64_t gate = MakeUserEvent(context);
  EXPECT_EQ(Completed(Marker(client_->NewId(), {gate})).status(), CL_INVALID_COMMAND_QUEUE);
  EXPECT_EQ(Completed(Marker(MakeQueue(context))).status(), CL_COMPLETE);
}

// Profiling values come with the completion, of queues that profile.
TEST_F(EventLoopbackTest, CompletionsCarryProfiles) {
  const uint64_t context = MakeContext();
  const pb::Completion plain = Completed(Marker(MakeQueue(context)));
  EXPECT_EQ(plain.profiling_size(), 0);
  const pb::Completion profiled =
      Completed(Marker(MakeQueue(context, kGpu, CL_QUEUE_PROFILING_ENABLE)));
  ASSERT_EQ(profiled.profiling_size(), 5);
  EXPECT_EQ(profiled.profiling(0), 1000u);
  EXPECT_EQ(profiled.profiling(3), 1003u);
  EXPECT_EQ(profiled.profiling(4), 1003u);
}

// Also of a command that need not wait for anything: the driver, which alone can tell the times, is
// not given an empty list, which would be everything to wait for.
TEST_F(EventLoopbackTest, WhatEndsAtOnceHasAProfile) {
  const uint64_t context = MakeContext(kCpu);
  const uint64_t queue = MakeQueue(
      context, kCpu, kOutOfOrder | cl_command_queue_properties{CL_QUEUE_PROFILING_ENABLE});
  pb::Command command;
  pb::EnqueueReadBuffer& body = *command.mutable_enqueue_read_buffer();
  const uint64_t read = On(body.mutable_on(), MakeQueue(context, kCpu));
  body.set_mem_id(MakeBuffer(context, kSize));
  body.set_size(4);
  fake_->ClearCalls();
  client_->Send(command);
  EXPECT_EQ(Completed(read).status(), CL_COMPLETE);
  EXPECT_EQ(fake_->Count("clEnqueueReadBuffer"), 0u);  // It was answered without the driver.
  const uint64_t gate = MakeUserEvent(context);
  const uint64_t gated = Marker(queue, {gate});
  EXPECT_EQ(Completed(Marker(queue, {read})).profiling_size(), 5);
  const uint64_t by_list = ListMarker(queue, {gate});
  SetUserEvent(gate, CL_COMPLETE);
  EXPECT_EQ(Completed(gated).profiling_size(), 5);
  EXPECT_EQ(Completed(by_list).profiling_size(), 5);
  EXPECT_EQ(Completed(ListMarker(queue, {read})).profiling_size(), 5);
}

}  // namespace
}  // namespace sluice::worker
