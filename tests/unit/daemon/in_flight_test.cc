// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/queues/in_flight.h"

#include "tests/loopback/harness.h"

namespace sluice::worker {
namespace {

class InFlightTest : public LoopbackTest {
 protected:
  void SetUp() override { Limit(8); }
  void Limit(uint64_t limit) {
    SessionOptions options;
    options.limits.in_flight = limit;
    Start(options);
    context_ = MakeContext();
    queue_ = MakeQueue(context_);
  }
  uint64_t Marker(uint64_t queue, bool with_event, const std::vector<uint64_t>& waits = {}) {
    pb::Command command;
    const uint64_t event = On(command.mutable_enqueue_marker()->mutable_on(), queue, waits);
    if (!with_event) command.mutable_enqueue_marker()->mutable_on()->set_event_id(0);
    client_->Send(command);
    return event;
  }
  uint64_t Finish(uint64_t queue) {
    pb::Command command;
    command.mutable_finish()->set_queue_id(queue);
    command.mutable_finish()->set_event_id(client_->NewId());
    client_->Send(command);
    return command.finish().event_id();
  }
  uint64_t InFlight() {
    client_->Sync();
    return client_->session().quota().in_flight();
  }

  uint64_t context_ = 0;
  uint64_t queue_ = 0;
};

// In an in-order queue a command with an event ends those before it that have none.
TEST_F(InFlightTest, AnEventCoversWhatCameBeforeIt) {
  const uint64_t gate = MakeUserEvent(context_);
  Marker(queue_, false, {gate});
  Marker(queue_, false);
  const uint64_t last = Marker(queue_, true);
  EXPECT_EQ(InFlight(), 3u);
  SetUserEvent(gate, CL_COMPLETE);
  EXPECT_EQ(Completed(last).status(), CL_COMPLETE);
  EXPECT_EQ(InFlight(), 0u);
}

// Out of order it covers itself alone; a Finish covers all, in any queue.
TEST_F(InFlightTest, FinishCoversAll) {
  const uint64_t unordered = MakeQueue(context_, kGpu, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  const uint64_t gate = MakeUserEvent(context_);
  Marker(unordered, false, {gate});
  const uint64_t other = MakeUserEvent(context_);
  const uint64_t free = Marker(unordered, true, {other});
  SetUserEvent(other, CL_COMPLETE);
  EXPECT_EQ(Completed(free).status(), CL_COMPLETE);
  EXPECT_EQ(InFlight(), 1u);
  const uint64_t finish = Finish(unordered);
  EXPECT_EQ(InFlight(), 2u);
  SetUserEvent(gate, CL_COMPLETE);
  EXPECT_EQ(Completed(finish).status(), CL_COMPLETE);
  EXPECT_EQ(InFlight(), 0u);
}

// So does a marker without a list, which comes after all before it there too.
TEST_F(InFlightTest, AMarkerWithoutAListCoversAll) {
  const uint64_t unordered = MakeQueue(context_, kGpu, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  const uint64_t gate = MakeUserEvent(context_);
  Marker(unordered, false, {gate});
  const uint64_t last = Marker(unordered, true);
  EXPECT_EQ(InFlight(), 2u);
  SetUserEvent(gate, CL_COMPLETE);
  EXPECT_EQ(Completed(last).status(), CL_COMPLETE);
  EXPECT_EQ(InFlight(), 0u);
}

// A command that fails says nothing of those before it; the Finish after it does.
TEST_F(InFlightTest, AFailureCoversOnlyItself) {
  const uint64_t gate = MakeUserEvent(context_);
  Marker(queue_, false);
  Marker(queue_, false);
  const uint64_t failing = Marker(queue_, true, {gate});
  SetUserEvent(gate, -5);
  EXPECT_LT(Completed(failing).status(), 0);
  EXPECT_EQ(InFlight(), 2u);
  EXPECT_EQ(Completed(Finish(queue_)).status(), CL_COMPLETE);
  EXPECT_EQ(InFlight(), 0u);
}

// Refused commands are not in flight, transfers are until their bytes have moved.
TEST_F(InFlightTest, RefusalsAndTransfers) {
  fake_->FailNext("clEnqueueMarkerWithWaitList", CL_OUT_OF_HOST_MEMORY);
  EXPECT_EQ(Completed(Marker(queue_, true)).status(), CL_OUT_OF_HOST_MEMORY);
  EXPECT_EQ(InFlight(), 0u);
  const std::string bytes(100000, 'a');
  pb::Command write;
  pb::EnqueueWriteBuffer& body = *write.mutable_enqueue_write_buffer();
  body.set_mem_id(MakeBuffer(context_, bytes.size()));
  body.set_size(bytes.size());
  const uint64_t event = On(body.mutable_on(), queue_);
  client_->Send(write);
  EXPECT_EQ(InFlight(), 1u);
  EXPECT_EQ(Feed(event, bytes).status(), CL_COMPLETE);
  EXPECT_EQ(InFlight(), 0u);
}

// A client that goes on beyond limit and slack ends its session, whatever kind of command it sends.
TEST_F(InFlightTest, ALiarEndsItsSession) {
  for (const bool finishes : {false, true}) {
    Limit(8);
    const uint64_t gate = MakeUserEvent(context_);
    Marker(queue_, false, {gate});
    for (uint64_t i = 0; i < 8 + 2 + kInFlightSlack && !client_->ended(); ++i) {
      if (finishes) {
        Finish(queue_);
      } else {
        Marker(queue_, i % 2 == 0);
      }
    }
    EXPECT_NE(client_->WaitForViolation().find("commands in flight"), std::string::npos);
  }
}

// Without a limit as many may wait as the client likes.
TEST_F(InFlightTest, NoLimit) {
  Limit(0);
  const uint64_t gate = MakeUserEvent(context_);
  Marker(queue_, false, {gate});
  for (uint64_t i = 0; i < 2 * kInFlightSlack; ++i) Marker(queue_, false);
  const uint64_t last = Marker(queue_, true);
  SetUserEvent(gate, CL_COMPLETE);
  EXPECT_EQ(Completed(last).status(), CL_COMPLETE);
  EXPECT_EQ(InFlight(), 0u);
}

}  // namespace
}  // namespace sluice::worker
