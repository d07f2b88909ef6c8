// SPDX-License-Identifier: Apache-2.0
// A client's wrong moves in the middle of a transfer.
#include "daemon/worker/memory/transfers.h"

#include "tests/loopback/harness.h"

namespace sluice::worker {
namespace {

class TransfersTest : public LoopbackTest {
 protected:
  void SetUp() override {
    LoopbackTest::SetUp();
    Prepare(kGpu);
  }
  void Prepare(uint64_t device, cl_command_queue_properties flags = 0) {
    const uint64_t context = MakeContext(device);
    queue_ = MakeQueue(context, device, flags);
    mem_ = MakeBuffer(context, kSize);
    pb::Command command;  // The next reader finds it filled.
    pb::EnqueueReadBuffer& body = *command.mutable_enqueue_read_buffer();
    const uint64_t event = On(body.mutable_on(), MakeQueue(context, device));
    body.set_mem_id(mem_);
    body.set_size(16);
    client_->Send(command);
    Completed(event);
    client_->Sync();  // The call itself has returned, and is recorded.
    fake_->ClearCalls();
  }
  uint64_t Write() {
    pb::Command command;
    pb::EnqueueWriteBuffer& body = *command.mutable_enqueue_write_buffer();
    const uint64_t event = On(body.mutable_on(), queue_);
    body.set_mem_id(mem_);
    body.set_size(kSize);
    client_->Send(command);
    return event;
  }
  uint64_t Read() {
    pb::Command command;
    pb::EnqueueReadBuffer& body = *command.mutable_enqueue_read_buffer();
    const uint64_t event = On(body.mutable_on(), queue_);
    body.set_mem_id(mem_);
    body.set_size(kSize);
    client_->Send(command);
    return event;
  }
  void Chunk(uint64_t event, uint64_t offset, uint64_t size) {
    pb::Command command;
    command.mutable_transfer_chunk()->set_event_id(event);
    command.mutable_transfer_chunk()->set_offset(offset);
    command.mutable_transfer_chunk()->set_size(size);
    client_->Send(command);
  }
  void Ack(uint64_t event, uint64_t offset, uint64_t size) {
    pb::Command command;
    command.mutable_transfer_ack()->set_event_id(event);
    command.mutable_transfer_ack()->set_offset(offset);
    command.mutable_transfer_ack()->set_size(size);
    client_->Send(command);
  }
  pb::Grant Granted() {
    return client_->WaitFor([](const ReceivedReply& r) { return r.reply.has_grant(); })
        .reply.grant();
  }

  static constexpr uint64_t kSize = 2 << 20;  // Two chunks.
  uint64_t queue_ = 0;
  uint64_t mem_ = 0;
};

// A grant may be filled in several pieces, in any order.
TEST_F(TransfersTest, GrantsMayBeFilledInPieces) {
  const uint64_t event = Write();
  for (int i = 0; i < 2; ++i) {
    const pb::Grant grant = Granted();
    Chunk(event, grant.offset() + grant.size() / 2, grant.size() - grant.size() / 2);
    Chunk(event, grant.offset(), grant.size() / 2);
  }
  EXPECT_EQ(Completed(event).status(), CL_COMPLETE);
}

// More than was granted, elsewhere than was granted, or the same twice, ends the session.
TEST_F(TransfersTest, WrongChunksEndTheSession) {
  struct Case {
    uint64_t offset, size;
  };
  for (const Case& c : {Case{0, kSize}, Case{kSize, 1}, Case{UINT64_MAX, 2}, Case{1, UINT64_MAX}}) {
    Start({});
    Prepare(kGpu);
    const uint64_t event = Write();
    Granted();
    Chunk(event, c.offset, c.size);
    EXPECT_NE(client_->WaitForViolation().find("was never granted"), std::string::npos);
  }
  Start({});
  Prepare(kGpu);
  fake_->HoldCommands();
  const uint64_t event = Write();
  const pb::Grant grant = Granted();
  Chunk(event, grant.offset(), grant.size());
  Chunk(event, grant.offset(), grant.size());
  EXPECT_NE(client_->WaitForViolation().find("twice"), std::string::npos);
  fake_->ReleaseCommands();
}

// Data that was not sent cannot be acknowledged.
TEST_F(TransfersTest, WrongAcksEndTheSession) {
  fake_->HoldCommands();
  const uint64_t event = Read();
  Ack(event, 0, 10);
  EXPECT_NE(client_->WaitForViolation().find("never sent"), std::string::npos);
  fake_->ReleaseCommands();
}

// Chunks of a later part may be read, and acknowledged, before those of an earlier one.
TEST_F(TransfersTest, ChunksMayBeReadInAnyOrder) {
  fake_->HoldCallbacks();
  const uint64_t event = Read();
  client_->WaitUntil([&] { return fake_->Count("clEnqueueReadBuffer") == 2; });
  client_->WaitUntil([&] { return fake_->held_callbacks() == 2; });
  fake_->ReleaseCallbacks(/*reversed=*/true);
  Take(event, kSize);
  client_->Sync();
}

// A chunk or an acknowledgement for what has ended, or never was, is nothing.
TEST_F(TransfersTest, LateFramesAreIgnored) {
  Chunk(31337, 0, 1);
  Ack(31337, 0, 1);
  const uint64_t event = Write();
  EXPECT_EQ(Feed(event, std::string(kSize, 'x')).status(), CL_COMPLETE);
  Chunk(event, 0, 1);
  Ack(event, 0, 1);
  client_->Sync();
  EXPECT_FALSE(client_->ended());
}

// Staging memory is given back when a transfer has ended, also when it has failed and the client is
// late to say that it is done.
TEST_F(TransfersTest, StagingIsGivenBack) {
  EXPECT_EQ(Feed(Write(), std::string(kSize, 'x')).status(), CL_COMPLETE);
  EXPECT_EQ(client_->session().pinned_heap().used_bytes(), 0u);
  fake_->FailNext("clEnqueueWriteBuffer", CL_OUT_OF_RESOURCES);
  const uint64_t event = Write();
  const pb::Grant first = Granted();
  const pb::Grant second = Granted();
  Chunk(event, first.offset(), first.size());
  EXPECT_EQ(Completed(event).status(), CL_OUT_OF_RESOURCES);
  Chunk(event, second.offset(), second.size());
  client_->Sync();
  EXPECT_EQ(client_->session().pinned_heap().used_bytes(), 0u);
}

// More transfers at once than there is staging memory for take turns, and all end.
TEST_F(TransfersTest, TransfersShareTheStagingMemory) {
  SessionOptions options;
  options.limits.memory_bytes = 40 << 20;
  Start(options);
  const uint64_t context = MakeContext();
  mem_ = MakeBuffer(context, kSize);
  std::vector<uint64_t> events;
  for (int i = 0; i < 12; ++i) {
    queue_ = MakeQueue(context);
    events.push_back(Write());
  }
  const std::string bytes(kSize, 'y');
  for (const uint64_t event : events) EXPECT_EQ(Feed(event, bytes).status(), CL_COMPLETE);
}

// A transfer of a buffer that lies in the heap asks the driver for nothing.
TEST_F(TransfersTest, HeapBuffersNeedNoDriver) {
  Prepare(kCpu);
  fake_->ClearCalls();
  const std::string bytes(kSize, 'z');
  EXPECT_EQ(Feed(Write(), bytes).status(), CL_COMPLETE);
  EXPECT_TRUE(Take(Read(), kSize) == bytes);
  EXPECT_EQ(fake_->Count("clEnqueueWriteBuffer") + fake_->Count("clEnqueueReadBuffer"), 0u);
}

// Section 5.14: the times are values of the device's clock. So the driver moves the bytes where
// they are wanted, and tells them; with a queue that does not tell, they are not available.
TEST_F(TransfersTest, TimesAreTheDrivers) {
  const std::string bytes(kSize, 't');
  for (const uint64_t device : {kCpu, kGpu}) {
    SCOPED_TRACE(device);
    Prepare(device, CL_QUEUE_PROFILING_ENABLE);
    fake_->ClearCalls();
    const pb::Completion written = Feed(Write(), bytes);
    ASSERT_EQ(written.profiling_size(), 5);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(written.profiling(i), 1000u + i);
    EXPECT_EQ(written.profiling(4), 1003u);
    EXPECT_TRUE(Take(Read(), kSize) == bytes);
    EXPECT_EQ(fake_->Count("clEnqueueReadBuffer"), 2u);
    EXPECT_EQ(fake_->Count("clCreateCommandQueue"), 1u);  // For both.
    Prepare(device, CL_QUEUE_PROFILING_ENABLE);
    fake_->FailNext("clCreateCommandQueue", CL_OUT_OF_RESOURCES);
    EXPECT_EQ(Feed(Write(), bytes).profiling_size(), 0);
  }
}

}  // namespace
}  // namespace sluice::worker
