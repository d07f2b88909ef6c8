// SPDX-License-Identifier: Apache-2.0
// Commands that nobody asks an event of, while more of them wait in the ring: the driver is asked
// for none either (Enqueuer::NeedsEvent). Their payloads, and what comes after them, are as ever.
#include <condition_variable>
#include <memory>
#include <mutex>

#include "tests/loopback/harness.h"

namespace sluice::worker {
namespace {

// Holds the session thread inside one call of the driver, while the ring fills.
class Stop {
 public:
  explicit Stop(fake::FakeCl* fake, const std::string& name) : fake_(fake) {
    fake->set_on_call([gate = gate_, name](const std::string& called) {
      std::unique_lock lock(gate->mu);
      if (called == name) gate->changed.wait(lock, [&] { return gate->open; });
    });
  }
  ~Stop() {
    GoOn();
    fake_->set_on_call(nullptr);
  }
  void GoOn() {
    const std::lock_guard lock(gate_->mu);
    gate_->open = true;
    gate_->changed.notify_all();
  }

 private:
  struct Gate {
    std::mutex mu;
    std::condition_variable changed;
    bool open = false;
  };
  fake::FakeCl* const fake_;
  // The session thread may still be in it when this has ended.
  const std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
};

class UnmarkedLoopbackTest : public LoopbackTest {
 protected:
  static constexpr int kCommands = 100;
  static constexpr uint64_t kPart = 64;

  void Prepare(cl_uint gpu_vendor_id) {
    client_.reset();
    Start({}, gpu_vendor_id);
    context_ = MakeContext();
    queue_ = MakeQueue(context_);
    buffer_ = MakeBuffer(context_, kCommands * kPart);
    kernel_ = MakeKernel(MakeProgram(context_));
    ReadAll(queue_);  // It has been filled.
    client_->Sync();
    fake_->ClearCalls();
  }
  void SetUp() override { Prepare(0); }

  // `event`: 0, none.
  void Launch(uint64_t event = 0) {
    pb::Command command;
    pb::EnqueueNdRangeKernel& body = *command.mutable_enqueue_nd_range_kernel();
    On(body.mutable_on(), queue_);
    body.mutable_on()->set_event_id(event);
    body.set_kernel_id(kernel_);
    body.mutable_range()->add_global(1);
    client_->Send(command);
  }
  void Write(int part) {
    pb::Command command;
    pb::EnqueueWriteBuffer& body = *command.mutable_enqueue_write_buffer();
    On(body.mutable_on(), queue_);
    body.mutable_on()->set_event_id(0);
    body.set_mem_id(buffer_);
    body.set_offset(part * kPart);
    body.set_size(kPart);
    client_->Send(command, std::string(kPart, static_cast<char>('a' + part % 26)));
  }
  std::string ReadAll(uint64_t queue) {
    pb::Command command;
    pb::EnqueueReadBuffer& body = *command.mutable_enqueue_read_buffer();
    const uint64_t event = On(body.mutable_on(), queue);
    body.set_mem_id(buffer_);
    body.set_size(kCommands * kPart);
    client_->Send(command);
    std::string bytes;
    EXPECT_EQ(client_->WaitForCompletion(event, &bytes).status(), CL_COMPLETE);
    return bytes;
  }
  static std::string Written() {
    std::string all;
    for (int i = 0; i < kCommands; ++i) all.append(kPart, static_cast<char>('a' + i % 26));
    return all;
  }
  uint64_t Finish() {
    pb::Command command;
    command.mutable_finish()->set_queue_id(queue_);
    command.mutable_finish()->set_event_id(client_->NewId());
    client_->Send(command);
    return command.finish().event_id();
  }
  size_t WithEvent(const std::string& name) {
    size_t count = 0;
    for (const fake::RecordedCall& call : fake_->Calls(name)) count += call.values.back();
    return count;
  }

  uint64_t context_ = 0, queue_ = 0, buffer_ = 0, kernel_ = 0;
};

// Of a full ring, the driver is asked for the events of the last few commands at most; a finish
// waits for all of them.
TEST_F(UnmarkedLoopbackTest, LaunchesOfAFullRingHaveNoEvents) {
  for (const cl_uint vendor : {cl_uint{0}, kNvidia}) {
    Prepare(vendor);
    std::atomic<int> runs = 0;
    fake_->set_on_kernel([&](const std::string&) { ++runs; });
    Stop stop(fake_, "clEnqueueNDRangeKernel");
    for (int i = 0; i < kCommands; ++i) Launch();
    const uint64_t finish = Finish();
    stop.GoOn();
    EXPECT_EQ(Completed(finish).status(), CL_COMPLETE);
    EXPECT_EQ(runs, kCommands);
    EXPECT_EQ(fake_->Count("clEnqueueNDRangeKernel"), size_t{kCommands});
    EXPECT_LT(WithEvent("clEnqueueNDRangeKernel"), 20u);
    fake_->set_on_kernel(nullptr);
  }
}

// So it is with barriers.
TEST_F(UnmarkedLoopbackTest, BarriersOfAFullRingHaveNoEvents) {
  {
    Stop stop(fake_, "clEnqueueBarrierWithWaitList");
    for (int i = 0; i < kCommands; ++i) {
      pb::Command command;
      On(command.mutable_enqueue_barrier()->mutable_on(), queue_);
      command.mutable_enqueue_barrier()->mutable_on()->set_event_id(0);
      client_->Send(command);
    }
  }
  EXPECT_EQ(Completed(Finish()).status(), CL_COMPLETE);
  EXPECT_EQ(fake_->Count("clEnqueueBarrierWithWaitList"), size_t{kCommands});
  EXPECT_LT(WithEvent("clEnqueueBarrierWithWaitList"), 20u);
}

// Bytes to be written are kept until they have been written, also beyond the queue's release.
TEST_F(UnmarkedLoopbackTest, PayloadsAreKept) {
  for (const cl_uint vendor : {cl_uint{0}, kNvidia}) {
    for (const bool release : {false, true}) {
      Prepare(vendor);
      fake_->HoldCommands();
      const int objects = fake_->live_objects();
      {
        Stop stop(fake_, "clEnqueueWriteBuffer");
        for (int i = 0; i < kCommands; ++i) Write(i);
        if (release) {
          pb::Command command;
          command.mutable_release_object()->set_id(queue_);
          client_->Send(command);
        }
      }
      client_->Sync();
      EXPECT_LT(WithEvent("clEnqueueWriteBuffer"), 20u);
      fake_->ReleaseCommands();
      const uint64_t other = MakeQueue(context_);
      if (!release) {
        EXPECT_EQ(Completed(Finish()).status(), CL_COMPLETE);
      }
      // Their events are gone. The other queue is left, the last event of this one, and the buffer
      // that its marks are written to.
      client_->WaitUntil([&] { return fake_->live_objects() <= objects + 3; });
      EXPECT_TRUE(ReadAll(other) == Written());
    }
  }
}

// One command among others that fails by what it waits for is told as failed, and none before it.
// (This driver fails what comes after it in the queue as well.)
TEST_F(UnmarkedLoopbackTest, FailuresAmongOthersAreTold) {
  for (const bool other_queue : {false, true}) {
    Prepare(kNvidia);
    if (other_queue) MakeQueue(context_);
    const uint64_t gate = MakeUserEvent(context_);
    constexpr size_t kFailing = 17;
    fake_->HoldCommands();
    std::vector<uint64_t> events;
    for (size_t i = 0; i < 40; ++i) {
      pb::Command command;
      const bool gated = i == kFailing;
      const std::vector<uint64_t> waits =
          gated ? std::vector<uint64_t>{gate} : std::vector<uint64_t>{};
      events.push_back(On(command.mutable_enqueue_marker()->mutable_on(), queue_, waits));
      command.mutable_enqueue_marker()->set_list_only(gated);
      client_->Send(command);
    }
    SetUserEvent(gate, -9);
    fake_->ReleaseCommands();
    for (size_t i = 0; i < events.size(); ++i) {
      const cl_int status = Completed(events[i]).status();
      EXPECT_EQ(status < 0, i >= kFailing) << i << ": " << status;
    }
  }
}

// Where kernels end late, no client hears of the end of its kernels as late as that.
TEST_F(UnmarkedLoopbackTest, NobodyWaitsForOtherQueues) {
  Prepare(kNvidia);
  fake_->set_kernels_end_late(true);
  const uint64_t gate = MakeUserEvent(context_);
  pb::Command command;
  const uint64_t held =
      On(command.mutable_enqueue_marker()->mutable_on(), MakeQueue(context_), {gate});
  client_->Send(command);
  for (int round = 0; round < 3; ++round) {
    Launch();
    EXPECT_EQ(Completed(Finish()).status(), CL_COMPLETE);
    const uint64_t launched = client_->NewId();
    Launch(launched);
    EXPECT_EQ(Completed(launched).status(), CL_COMPLETE);
    const uint64_t behind = client_->NewId();
    Launch(behind);
    Launch();
    const uint64_t finish = Finish();
    EXPECT_EQ(Completed(behind).status(), CL_COMPLETE);
    EXPECT_EQ(Completed(finish).status(), CL_COMPLETE);
    EXPECT_EQ(ReadAll(queue_).size(), kCommands * kPart);
  }
  SetUserEvent(gate, CL_COMPLETE);
  EXPECT_EQ(Completed(held).status(), CL_COMPLETE);
}

// Its client hears of the end of one although what comes behind it waits for that client; and where
// the driver refuses a mark.
TEST_F(UnmarkedLoopbackTest, NobodyWaitsForWhatIsBehind) {
  for (const bool refused : {false, true}) {
    Prepare(kNvidia);
    MakeQueue(context_);
    const uint64_t gate = MakeUserEvent(context_);
    if (refused) fake_->FailNext("clEnqueueWriteBuffer", CL_OUT_OF_RESOURCES);
    const uint64_t launched = client_->NewId();
    uint64_t held = 0;
    {
      Stop stop(fake_, "clEnqueueNDRangeKernel");
      Launch(launched);
      pb::Command command;
      held = On(command.mutable_enqueue_marker()->mutable_on(), queue_, {gate});
      client_->Send(command);
    }
    EXPECT_EQ(Completed(launched).status(), CL_COMPLETE);
    SetUserEvent(gate, CL_COMPLETE);
    EXPECT_EQ(Completed(held).status(), CL_COMPLETE);
  }
}

// The client is told the driver's answer to a finish (section 5.15).
TEST_F(UnmarkedLoopbackTest, FinishTellsWhatTheDriverTells) {
  for (const cl_int said : {CL_SUCCESS, CL_INVALID_COMMAND_QUEUE}) {
    Prepare(kNvidia);
    const uint64_t gate = MakeUserEvent(context_);
    pb::Command command;
    On(command.mutable_enqueue_marker()->mutable_on(), queue_, {gate});
    client_->Send(command);
    const uint64_t finish = Finish();
    if (said != CL_SUCCESS) fake_->FailNext("clFinish", said);
    SetUserEvent(gate, -9);
    EXPECT_EQ(Completed(finish).status(), said);
  }
}

}  // namespace
}  // namespace sluice::worker
