// SPDX-License-Identifier: Apache-2.0
// The zeros of new memory (daemon/worker/memory/zero_fill.h): when the driver is asked for them,
// and who waits for them.
#include "tests/loopback/harness.h"

namespace sluice::worker {
namespace {

class ZerosLoopbackTest : public LoopbackTest {
 protected:
  static constexpr uint64_t kBytes = 4096;

  void Prepare(cl_uint gpu_vendor_id) {
    client_.reset();
    Start({}, gpu_vendor_id);
    context_ = MakeContext();
    queue_ = MakeQueue(context_);
    kernel_ = MakeKernel(MakeProgram(context_));
    fake_->ClearCalls();
  }
  // A driver whose faults end a whole context.
  void SetUp() override { Prepare(kNvidia); }

  uint64_t Write(uint64_t queue, uint64_t mem, uint64_t size, char byte,
                 const std::vector<uint64_t>& waits = {}) {
    pb::Command command;
    pb::EnqueueWriteBuffer& body = *command.mutable_enqueue_write_buffer();
    const uint64_t event = On(body.mutable_on(), queue, waits);
    body.set_mem_id(mem);
    body.set_size(size);
    client_->Send(command, std::string(size, byte));
    return event;
  }
  uint64_t Read(uint64_t queue, uint64_t mem) {
    pb::Command command;
    pb::EnqueueReadBuffer& body = *command.mutable_enqueue_read_buffer();
    const uint64_t event = On(body.mutable_on(), queue);
    body.set_mem_id(mem);
    body.set_size(kBytes);
    client_->Send(command);
    return event;
  }
  std::string Got(uint64_t read) {
    std::string bytes;
    EXPECT_EQ(client_->WaitForCompletion(read, &bytes).status(), CL_COMPLETE);
    return bytes;
  }
  uint64_t Launch(uint64_t queue) {
    pb::Command command;
    pb::EnqueueNdRangeKernel& body = *command.mutable_enqueue_nd_range_kernel();
    const uint64_t event = On(body.mutable_on(), queue);
    body.set_kernel_id(kernel_);
    body.mutable_range()->add_global(1);
    client_->Send(command);
    return event;
  }
  void Release(uint64_t id) {
    pb::Command command;
    command.mutable_release_object()->set_id(id);
    client_->Send(command);
    client_->Sync();
  }
  size_t Fills() const { return fake_->Count("clEnqueueFillBuffer"); }

  uint64_t context_ = 0, queue_ = 0, kernel_ = 0;
};

TEST_F(ZerosLoopbackTest, SmallBuffersAreNotFilledWhenTheyAreMade) {
  const uint64_t mem = MakeBuffer(context_, kBytes);
  EXPECT_EQ(Fills(), 0u);
  EXPECT_EQ(fake_->Count("clFinish"), 0u);
  Release(mem);
  EXPECT_EQ(Completed(Launch(queue_)).status(), CL_COMPLETE);
  EXPECT_EQ(Fills(), 0u);
}

// Their creation reports if there is no memory for them.
TEST_F(ZerosLoopbackTest, LargeBuffersAreFilledWhenTheyAreMade) {
  MakeBuffer(context_, 2 << 20);
  EXPECT_EQ(Fills(), 1u);
  EXPECT_EQ(fake_->Count("clFinish"), 0u);
}

TEST_F(ZerosLoopbackTest, AWriteOfAllTakesTheirPlace) {
  const uint64_t mem = MakeBuffer(context_, kBytes);
  Write(queue_, mem, kBytes, 'w');
  EXPECT_EQ(Got(Read(queue_, mem)), std::string(kBytes, 'w'));
  EXPECT_EQ(Fills(), 0u);
}

// Whatever else may see the memory comes after the fill.
TEST_F(ZerosLoopbackTest, OtherCommandsComeAfterTheFill) {
  const uint64_t other = MakeBuffer(context_, kBytes);
  const std::vector<std::function<uint64_t(uint64_t)>> commands = {
      [&](uint64_t mem) { return Write(queue_, mem, kBytes / 2, 'w'); },
      [&](uint64_t mem) { return Read(queue_, mem); },
      [&](uint64_t) { return Launch(queue_); },
      [&](uint64_t) { return Write(queue_, other, kBytes / 2, 'o'); },
  };
  for (const auto& command : commands) {
    const uint64_t mem = MakeBuffer(context_, kBytes);
    const size_t before = Fills();
    Completed(command(mem));
    EXPECT_GT(Fills(), before);
    const std::string bytes = Got(Read(queue_, mem));
    EXPECT_EQ(bytes.substr(kBytes / 2), std::string(kBytes / 2, '\0'));
  }
}

// A driver of which we do not know that a write cannot fail alone.
TEST_F(ZerosLoopbackTest, OfOtherDriversAWriteOfAllDoesNotTakeTheirPlace) {
  Prepare(0);
  const uint64_t mem = MakeBuffer(context_, kBytes);
  EXPECT_EQ(Completed(Write(queue_, mem, kBytes, 'w')).status(), CL_COMPLETE);
  EXPECT_EQ(Fills(), 1u);
  EXPECT_EQ(Got(Read(queue_, mem)), std::string(kBytes, 'w'));
}

// Nor does one in a queue out of order, or one that waits: what comes next would not find it done,
// or could not wait for it.
TEST_F(ZerosLoopbackTest, OnlyAWriteThatIsSureTakesTheirPlace) {
  const uint64_t open = MakeQueue(context_, kGpu, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  EXPECT_EQ(Completed(Write(open, MakeBuffer(context_, kBytes), kBytes, 'w')).status(),
            CL_COMPLETE);
  EXPECT_EQ(Fills(), 1u);
  const uint64_t gate = MakeUserEvent(context_);
  const uint64_t first = Write(queue_, MakeBuffer(context_, kBytes), kBytes, 'w', {gate});
  const uint64_t mem = MakeBuffer(context_, kBytes);
  const uint64_t second = Write(queue_, mem, kBytes, 'w');
  client_->Sync();
  EXPECT_EQ(Fills(), 3u);
  // Another queue does not wait for them.
  EXPECT_EQ(Got(Read(MakeQueue(context_), mem)), std::string(kBytes, '\0'));
  SetUserEvent(gate, CL_COMPLETE);
  EXPECT_EQ(Completed(first).status(), CL_COMPLETE);
  EXPECT_EQ(Completed(second).status(), CL_COMPLETE);
}

// Another queue sees what was written in place of the zeros, or zeros: never what was there before.
TEST_F(ZerosLoopbackTest, OtherQueuesWait) {
  const uint64_t other = MakeQueue(context_);
  for (const bool whole : {true, false}) {
    const uint64_t mem = MakeBuffer(context_, kBytes);
    fake_->ClearCalls();
    fake_->HoldCommands();
    Write(queue_, mem, whole ? kBytes : kBytes / 2, 'w');
    const uint64_t read = Read(other, mem);
    client_->Sync();
    EXPECT_GE(fake_->Count("clEnqueueBarrierWithWaitList"), 1u);
    fake_->ReleaseCommands();
    const std::string bytes = Got(read);
    if (whole) {
      EXPECT_EQ(bytes, std::string(kBytes, 'w'));
    } else {
      EXPECT_EQ(bytes.substr(kBytes / 2), std::string(kBytes / 2, '\0'));
    }
  }
}

// The queue of such a write may be gone, and another lie where it lay.
TEST_F(ZerosLoopbackTest, OtherQueuesWaitForThoseThatAreGone) {
  const uint64_t mem = MakeBuffer(context_, kBytes);
  const uint64_t gone = MakeQueue(context_);
  fake_->HoldCommands();
  Write(gone, mem, kBytes, 'w');
  Release(gone);
  for (int i = 0; i < 4; ++i) {
    const uint64_t read = Read(MakeQueue(context_), mem);
    client_->Sync();
    EXPECT_EQ(fake_->Count("clEnqueueBarrierWithWaitList"), size_t(i) + 1);
    if (i < 3) continue;
    fake_->ReleaseCommands();
    EXPECT_EQ(Got(read), std::string(kBytes, 'w'));
  }
}

// The driver may keep a kernel's argument beyond the object of which the zeros are owed.
TEST_F(ZerosLoopbackTest, ArgumentsAreFilled) {
  const uint64_t mem = MakeBuffer(context_, kBytes);
  pb::Command command;
  command.mutable_check_kernel_arg()->set_kernel_id(kernel_);
  command.mutable_check_kernel_arg()->mutable_arg()->set_mem_id(mem);
  EXPECT_EQ(client_->Call(command).status(), CL_SUCCESS);
  EXPECT_EQ(Fills(), 1u);
  Release(mem);
  fake_->HoldCommands();
  const uint64_t launched = Launch(queue_);
  client_->Sync();
  fake_->ReleaseCommands();
  EXPECT_EQ(Completed(launched).status(), CL_COMPLETE);
}

// A fill that fails fails what would see the memory, until it succeeds.
TEST_F(ZerosLoopbackTest, FailedFillsAreOwed) {
  const uint64_t mem = MakeBuffer(context_, kBytes);
  fake_->FailNext("clEnqueueFillBuffer", CL_MEM_OBJECT_ALLOCATION_FAILURE);
  EXPECT_EQ(Completed(Launch(queue_)).status(), CL_MEM_OBJECT_ALLOCATION_FAILURE);
  EXPECT_EQ(Completed(Launch(queue_)).status(), CL_COMPLETE);
  EXPECT_EQ(Got(Read(queue_, mem)), std::string(kBytes, '\0'));
}

}  // namespace
}  // namespace sluice::worker
