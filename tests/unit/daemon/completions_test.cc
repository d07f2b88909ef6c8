// SPDX-License-Identifier: Apache-2.0
// The part of Completions that the loopback tests cannot reach: its order under every order of
// callbacks.
#include "daemon/worker/queues/completions.h"

#include <algorithm>
#include <random>

#include "tests/loopback/harness.h"

namespace sluice::worker {
namespace {

class CompletionsTest : public LoopbackTest {
 protected:
  uint64_t Marker(uint64_t queue, const std::vector<uint64_t>& waits = {}, bool list_only = false) {
    pb::Command command;
    const uint64_t event = On(command.mutable_enqueue_marker()->mutable_on(), queue, waits);
    command.mutable_enqueue_marker()->set_list_only(list_only);
    client_->Send(command);
    return event;
  }
};

// Failures come at once, before predecessors that still run; these come when they have ended.
TEST_F(CompletionsTest, FailuresDoNotWaitForPredecessors) {
  const uint64_t context = MakeContext();
  const uint64_t queue = MakeQueue(context);
  const uint64_t slow_gate = MakeUserEvent(context);
  const uint64_t bad_gate = MakeUserEvent(context);
  const uint64_t slow = Marker(queue, {slow_gate});
  const uint64_t failing = Marker(queue, {bad_gate});
  SetUserEvent(bad_gate, -9);
  EXPECT_LT(Completed(failing).status(), 0);
  client_->Sync();
  for (const ReceivedReply& r : client_->TakeAll()) {
    EXPECT_NE(r.reply.completion().event_id(), slow);
  }
  SetUserEvent(slow_gate, CL_COMPLETE);
  EXPECT_EQ(Completed(slow).status(), CL_COMPLETE);
}

// Out of order, a command's completion waits for nobody else's.
TEST_F(CompletionsTest, OutOfOrderCompletionsStandAlone) {
  const uint64_t context = MakeContext();
  const uint64_t queue = MakeQueue(context, kGpu, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  const uint64_t gate = MakeUserEvent(context);
  const uint64_t open = MakeUserEvent(context);
  const uint64_t gated = Marker(queue, {gate});
  const uint64_t free = Marker(queue, {open});
  SetUserEvent(open, CL_COMPLETE);
  EXPECT_EQ(Completed(free).status(), CL_COMPLETE);
  SetUserEvent(gate, CL_COMPLETE);
  EXPECT_EQ(Completed(gated).status(), CL_COMPLETE);
}

// With callbacks and user events in a random order on several queues, every event completes once,
// and those of an in-order queue in its order.
TEST_F(CompletionsTest, RandomOrders) {
  std::mt19937 random(11);
  for (int round = 0; round < 20; ++round) {
    const uint64_t context = MakeContext();
    const std::vector<uint64_t> queues = {
        MakeQueue(context), MakeQueue(context),
        MakeQueue(context, kGpu, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE)};
    std::vector<std::vector<uint64_t>> events(queues.size());
    std::vector<uint64_t> gates;
    fake_->HoldCallbacks();
    for (int i = 0; i < 30; ++i) {
      const size_t q = random() % queues.size();
      std::vector<uint64_t> waits;
      if (random() % 3 == 0) {
        gates.push_back(MakeUserEvent(context));
        waits.push_back(gates.back());
      }
      events[q].push_back(Marker(queues[q], waits, !waits.empty() && random() % 2 == 0));
    }
    std::shuffle(gates.begin(), gates.end(), random);
    for (const uint64_t gate : gates) SetUserEvent(gate, CL_COMPLETE);
    client_->Sync();
    fake_->ReleaseCallbacks(/*reversed=*/round % 2 == 0);
    std::vector<uint64_t> order;
    while (order.size() < 30) {
      order.push_back(
          client_->WaitFor([](const ReceivedReply& r) { return r.reply.has_completion(); })
              .reply.completion()
              .event_id());
    }
    for (size_t q = 0; q < 2; ++q) {
      std::vector<uint64_t> mine;
      for (const uint64_t event : order) {
        if (std::count(events[q].begin(), events[q].end(), event) != 0) mine.push_back(event);
      }
      EXPECT_EQ(mine, events[q]);
    }
    std::sort(order.begin(), order.end());
    EXPECT_EQ(std::unique(order.begin(), order.end()), order.end());
  }
}

// A command that fails between the look at it and the report of its queue fails, and does not count
// as complete.
TEST_F(CompletionsTest, FailsWhileItsQueueIsReported) {
  cl_device_id device = fake::FakeCl::gpu();
  cl_int status = 77;
  const UniqueCl<cl_context> context(
      cl().clCreateContext(nullptr, 1, &device, nullptr, nullptr, &status));
  ASSERT_EQ(status, CL_SUCCESS);
  UniqueCl<cl_event> events[3];
  std::vector<cl_int> told(3, 77);
  Completions completions(nullptr, nullptr);
  const Completions::LaneRef lane = Completions::MakeLane(/*in_order=*/true);
  for (int i = 0; i < 3; ++i) {
    events[i].reset(cl().clCreateUserEvent(context.get(), &status));
    ASSERT_EQ(status, CL_SUCCESS);
    completions.Then(events[i].get(), [&told, i](cl_int ended) { told[i] = ended; }, {lane});
  }
  // The sweep looks at all three. The report looks at the second, then at the oldest: meanwhile the
  // second fails.
  int looks = 0;
  fake_->set_on_call([&](const std::string& name) {
    if (name != "clGetEventInfo" || ++looks != 5) return;
    cl().clSetUserEventStatus(events[1].get(), -5);
    completions.SweepFailed();
  });
  fake_->HoldCallbacks();  // For good: they would come after this has gone.
  cl().clSetUserEventStatus(events[2].get(), -9);
  completions.SweepFailed();
  fake_->set_on_call(nullptr);
  EXPECT_EQ(told, (std::vector<cl_int>{77, -5, -9}));
  cl().clSetUserEventStatus(events[0].get(), CL_COMPLETE);
  completions.SweepEnded();
  EXPECT_EQ(told, (std::vector<cl_int>{CL_COMPLETE, -5, -9}));
}

}  // namespace
}  // namespace sluice::worker
