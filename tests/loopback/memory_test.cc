// SPDX-License-Identifier: Apache-2.0
// proto/commands/memory.proto through the worker.
#include <numeric>

#include "tests/loopback/harness.h"

namespace sluice::worker {
namespace {

using fake::RecordedCall;

std::string Pattern(size_t size) {
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 7 + i / 4096);
  return bytes;
}

class MemoryLoopbackTest : public LoopbackTest {
 protected:
  uint64_t Write(uint64_t queue, uint64_t mem, uint64_t offset, std::string_view payload,
                 uint64_t size, const std::vector<uint64_t>& waits = {}) {
    pb::Command command;
    pb::EnqueueWriteBuffer& body = *command.mutable_enqueue_write_buffer();
    const uint64_t event = On(body.mutable_on(), queue, waits);
    body.set_mem_id(mem);
    body.set_offset(offset);
    body.set_size(size);
    client_->Send(command, payload);
    return event;
  }
  uint64_t Read(uint64_t queue, uint64_t mem, uint64_t offset, uint64_t size,
                const std::vector<uint64_t>& waits = {}) {
    pb::Command command;
    pb::EnqueueReadBuffer& body = *command.mutable_enqueue_read_buffer();
    const uint64_t event = On(body.mutable_on(), queue, waits);
    body.set_mem_id(mem);
    body.set_offset(offset);
    body.set_size(size);
    client_->Send(command);
    return event;
  }
  uint64_t WriteInitial(uint64_t mem) {
    pb::Command command;
    pb::WriteInitialContents& body = *command.mutable_write_initial_contents();
    body.mutable_on()->set_event_id(client_->NewId());
    body.mutable_on()->set_unnamed(true);
    body.set_mem_id(mem);
    client_->Send(command);
    return body.on().event_id();
  }
  std::string SmallRead(uint64_t queue, uint64_t mem, uint64_t offset, uint64_t size) {
    std::string payload;
    const uint64_t event = Read(queue, mem, offset, size);
    EXPECT_EQ(client_->WaitForCompletion(event, &payload).status(), CL_COMPLETE);
    return payload;
  }
};

// The driver is asked for a buffer of the size and flags the application gave, with its contents.
TEST_F(MemoryLoopbackTest, CreateBufferForwardsSizeFlagsAndContents) {
  const uint64_t context = MakeContext();
  pb::Command command;
  pb::CreateBuffer& body = *command.mutable_create_buffer();
  body.set_mem_id(client_->NewId());
  body.set_context_id(context);
  body.set_flags(CL_MEM_READ_ONLY | CL_MEM_HOST_WRITE_ONLY);
  body.set_size(12);
  EXPECT_EQ(client_->Call(command, "twelve bytes").status(), CL_SUCCESS);
  const RecordedCall call = fake_->Last("clCreateBuffer");
  EXPECT_EQ(call.values[1], CL_MEM_READ_ONLY | CL_MEM_HOST_WRITE_ONLY | CL_MEM_COPY_HOST_PTR);
  EXPECT_EQ(call.values[2], 12u);
  EXPECT_EQ(call.bytes, "twelve bytes");
}

// Contents that do not go with the creation are asked for at once, whatever queues wait for, and
// are the memory's; the event ends when they are.
TEST_F(MemoryLoopbackTest, InitialContentsComeInChunks) {
  const std::string contents = Pattern(5'000'003);
  for (const uint64_t device : {kGpu, kCpu}) {
    const uint64_t context = MakeContext(device);
    const uint64_t queue = MakeQueue(context, device);
    const uint64_t mem = MakeBuffer(context, contents.size());
    EXPECT_EQ(Feed(WriteInitial(mem), contents).status(), CL_COMPLETE);
    EXPECT_EQ(Take(Read(queue, mem, 0, contents.size()), contents.size()), contents);
  }
}

// Contents for what is no memory object fail, and keep nothing in flight.
TEST_F(MemoryLoopbackTest, InitialContentsOfNothingAreRefused) {
  const uint64_t context = MakeContext();
  EXPECT_EQ(Completed(WriteInitial(context)).status(), CL_INVALID_MEM_OBJECT);
  EXPECT_EQ(client_->session().quota().in_flight(), 0u);
}

// Properties reach the driver in pairs, with a terminator.
TEST_F(MemoryLoopbackTest, CreateBufferForwardsProperties) {
  pb::Command command;
  pb::CreateBuffer& body = *command.mutable_create_buffer();
  body.set_mem_id(client_->NewId());
  body.set_context_id(MakeContext());
  body.set_size(64);
  body.add_properties(0x1234);
  body.add_properties(5);
  EXPECT_EQ(client_->Call(command).status(), CL_SUCCESS);
  EXPECT_EQ(fake_->Last("clCreateBufferWithProperties").arrays["properties"],
            (std::vector<uint64_t>{0x1234, 5}));
}

// A GPU buffer without contents reads as zeros, whatever the driver's memory held before.
TEST_F(MemoryLoopbackTest, NewGpuMemoryIsZero) {
  const uint64_t context = MakeContext();
  const uint64_t queue = MakeQueue(context);
  for (const size_t bytes : {1, 15, 16, 17, 1000, 1003}) {
    const uint64_t mem = MakeBuffer(context, bytes);
    EXPECT_EQ(SmallRead(queue, mem, 0, bytes), std::string(bytes, '\0'));
  }
}

// Also where the host may not write: the driver is asked for it in no such way.
TEST_F(MemoryLoopbackTest, NewMemoryIsZeroWithoutTheHost) {
  const uint64_t context = MakeContext();
  pb::Command command;
  pb::CreateBuffer& body = *command.mutable_create_buffer();
  body.set_mem_id(client_->NewId());
  body.set_context_id(context);
  body.set_size(1003);
  body.set_flags(CL_MEM_READ_ONLY | CL_MEM_HOST_NO_ACCESS);
  EXPECT_EQ(client_->Call(command).status(), CL_SUCCESS);
}

// On a CPU the buffer is the heap span that the answer names: what the client writes there, the
// driver has.
TEST_F(MemoryLoopbackTest, CpuBufferLiesInTheHeap) {
  const uint64_t context = MakeContext(kCpu);
  const uint64_t queue = MakeQueue(context, kCpu);
  pb::Command command;
  pb::CreateBuffer& body = *command.mutable_create_buffer();
  body.set_mem_id(client_->NewId());
  body.set_context_id(context);
  body.set_size(5000);
  const pb::Answer answer = client_->Call(command);
  ASSERT_TRUE(answer.memory().in_heap());
  uint8_t* const memory = client_->Map({answer.memory().segment(), answer.memory().offset(), 5000});
  ASSERT_NE(memory, nullptr);
  EXPECT_EQ(std::accumulate(memory, memory + 5000, 0), 0);
  memory[4321] = 77;
  EXPECT_EQ(SmallRead(queue, body.mem_id(), 4321, 1), std::string(1, 77));
  EXPECT_EQ(fake_->Last("clCreateBuffer").values[1] & CL_MEM_USE_HOST_PTR, CL_MEM_USE_HOST_PTR);
}

// The heap span of a released buffer is not given to another before the driver has destroyed the
// buffer: a kernel may still be writing there.
TEST_F(MemoryLoopbackTest, SpanOfReleasedBufferWaitsForTheDriver) {
  const uint64_t context = MakeContext(kCpu);
  const uint64_t queue = MakeQueue(context, kCpu, CL_QUEUE_PROFILING_ENABLE);
  const uint64_t mem = MakeBuffer(context, 4096);
  fake_->HoldCommands();
  const uint64_t event = Write(queue, mem, 0, "still running", 13);
  pb::Command release;
  release.mutable_release_object()->set_id(mem);
  client_->Send(release);
  client_->Sync();
  EXPECT_EQ(client_->session().heap().used_bytes(), 4096u);
  fake_->ReleaseCommands();
  EXPECT_EQ(Completed(event).status(), CL_COMPLETE);
  client_->WaitUntil([&] { return client_->session().heap().used_bytes() == 0; });
}

// Creation over the session's memory limit is an error at once, and released memory counts no more.
TEST_F(MemoryLoopbackTest, MemoryIsBounded) {
  SessionOptions options;
  options.limits.memory_bytes = 10000;
  Start(options);
  const uint64_t context = MakeContext();
  const uint64_t mem = MakeBuffer(context, 9000);
  pb::Command command;
  pb::CreateBuffer& body = *command.mutable_create_buffer();
  body.set_mem_id(client_->NewId());
  body.set_context_id(context);
  body.set_size(2000);
  EXPECT_EQ(client_->Call(command).status(), CL_MEM_OBJECT_ALLOCATION_FAILURE);
  pb::Command release;
  release.mutable_release_object()->set_id(mem);
  client_->Send(release);
  EXPECT_EQ(client_->Call(command).status(), CL_SUCCESS);
}

// A sub-buffer has the origin and size the application gave, and reads its parent's bytes.
TEST_F(MemoryLoopbackTest, SubBufferForwardsItsRegion) {
  const uint64_t context = MakeContext();
  const uint64_t queue = MakeQueue(context);
  const uint64_t parent = MakeBuffer(context, 1024, Pattern(1024));
  pb::Command command;
  pb::CreateSubBuffer& body = *command.mutable_create_sub_buffer();
  body.set_mem_id(client_->NewId());
  body.set_parent_id(parent);
  body.set_flags(CL_MEM_READ_ONLY);
  body.set_origin(128);
  body.set_size(256);
  EXPECT_EQ(client_->Call(command).status(), CL_SUCCESS);
  EXPECT_EQ(fake_->Last("clCreateSubBuffer").arrays["region"], (std::vector<uint64_t>{128, 256}));
  EXPECT_EQ(SmallRead(queue, body.mem_id(), 0, 256), Pattern(1024).substr(128, 256));
}

// The driver sees a pipe's packet size and count; all its packets count as the session's memory.
TEST_F(MemoryLoopbackTest, CreatePipeForwardsSizesAndCharges) {
  SessionOptions options;
  options.limits.memory_bytes = 128;
  Start(options);
  pb::Command command;
  pb::CreatePipe& body = *command.mutable_create_pipe();
  body.set_mem_id(client_->NewId());
  body.set_context_id(MakeContext());
  body.set_flags(CL_MEM_READ_WRITE);
  body.set_packet_size(16);
  for (const uint32_t packets : {9u, 1u << 28, UINT32_MAX}) {
    body.set_max_packets(packets);
    EXPECT_EQ(client_->Call(command).status(), CL_MEM_OBJECT_ALLOCATION_FAILURE) << packets;
  }
  body.set_max_packets(8);
  EXPECT_EQ(client_->Call(command).status(), CL_SUCCESS);
  EXPECT_EQ(client_->session().quota().memory_bytes(), 128u);
  const RecordedCall call = fake_->Last("clCreatePipe");
  EXPECT_EQ(call.values[2], 16u);
  EXPECT_EQ(call.values[3], 8u);
}

// A small write's payload arrives at its offset; a small read brings it back with the completion.
TEST_F(MemoryLoopbackTest, SmallWriteAndRead) {
  for (const uint64_t device : {kGpu, kCpu}) {
    const uint64_t context = MakeContext(device);
    const uint64_t queue = MakeQueue(context, device);
    const uint64_t mem = MakeBuffer(context, 64);
    EXPECT_EQ(Completed(Write(queue, mem, 10, "hello", 5)).status(), CL_COMPLETE);
    EXPECT_EQ(SmallRead(queue, mem, 8, 9), std::string("\0\0hello\0\0", 9));
  }
}

// A small read of a GPU's buffer while nothing runs is one call that waits. Behind something that
// runs, or with a list to wait for, it must not wait, since other commands come behind it.
TEST_F(MemoryLoopbackTest, SmallReadWaitsOnlyWhenIdle) {
  const uint64_t context = MakeContext();
  const uint64_t queue = MakeQueue(context);
  const uint64_t mem = MakeBuffer(context, 64, std::string(64, 'x'));
  constexpr int kBlocking = 2;  // Of clEnqueueReadBuffer's arguments.
  EXPECT_EQ(SmallRead(queue, mem, 0, 4), "xxxx");
  EXPECT_EQ(fake_->Last("clEnqueueReadBuffer").values[kBlocking], CL_TRUE);
  fake_->HoldCommands();
  const uint64_t write = Write(queue, mem, 0, "abcd", 4);
  const uint64_t read = Read(queue, mem, 0, 4);
  const uint64_t other_queue = MakeQueue(context);
  const uint64_t other = Read(other_queue, mem, 8, 4);
  client_->Sync();
  EXPECT_EQ(fake_->Last("clEnqueueReadBuffer").values[kBlocking], CL_FALSE);
  fake_->ReleaseCommands();
  EXPECT_EQ(Completed(write).status(), CL_COMPLETE);
  std::string payload;
  EXPECT_EQ(client_->WaitForCompletion(read, &payload).status(), CL_COMPLETE);
  EXPECT_EQ(payload, "abcd");
  EXPECT_EQ(Completed(other).status(), CL_COMPLETE);
  // The client is told of an end before the worker counts itself idle.
  bool waits = false;
  for (int i = 0; i < 1000 && !waits; ++i) {
    EXPECT_EQ(SmallRead(queue, mem, 0, 4), "abcd");
    waits = fake_->Last("clEnqueueReadBuffer").values[kBlocking] == CL_TRUE;
  }
  EXPECT_TRUE(waits);
}

// A large write asks for its bytes in chunks when it may run, and a large read returns them,
// whether the buffer lies in the heap or not.
TEST_F(MemoryLoopbackTest, LargeTransfersGoThroughTheHeap) {
  for (const uint64_t device : {kGpu, kCpu}) {
    const uint64_t context = MakeContext(device);
    const uint64_t queue = MakeQueue(context, device);
    const std::string bytes = Pattern(21 << 20);  // Five chunks and a bit.
    const uint64_t mem = MakeBuffer(context, bytes.size() + 3);
    EXPECT_EQ(Feed(Write(queue, mem, 3, {}, bytes.size()), bytes).status(), CL_COMPLETE);
    EXPECT_EQ(Take(Read(queue, mem, 3, bytes.size()), bytes.size()), bytes);
  }
}

// Until what a large write waits for has ended, nothing is asked of the client; when that fails,
// the write fails as dependents do.
TEST_F(MemoryLoopbackTest, LargeWriteWaitsForItsEvents) {
  const uint64_t context = MakeContext();
  const uint64_t queue = MakeQueue(context);
  const uint64_t mem = MakeBuffer(context, 100000);
  const uint64_t gate = MakeUserEvent(context);
  const uint64_t event = Write(queue, mem, 0, {}, 100000, {gate});
  client_->Sync();
  for (const ReceivedReply& received : client_->TakeAll()) {
    EXPECT_FALSE(received.reply.has_grant());
  }
  SetUserEvent(gate, CL_COMPLETE);
  EXPECT_EQ(Feed(event, Pattern(100000)).status(), CL_COMPLETE);

  const uint64_t bad_gate = MakeUserEvent(context);
  const uint64_t failing = Write(queue, mem, 0, {}, 100000, {bad_gate});
  SetUserEvent(bad_gate, -5);
  EXPECT_EQ(Completed(failing).status(), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
}

// A large transfer that fails fails what waits for it, and leaves the queue usable.
TEST_F(MemoryLoopbackTest, FailedTransferFailsItsDependentsOnly) {
  for (const cl_command_queue_properties flags :
       {cl_command_queue_properties{0},
        cl_command_queue_properties{CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE}}) {
    const uint64_t context = MakeContext();
    const uint64_t queue = MakeQueue(context, kGpu, flags);
    const uint64_t mem = MakeBuffer(context, 100000);
    fake_->FailNext("clEnqueueWriteBuffer", CL_OUT_OF_RESOURCES);
    const uint64_t failing = Write(queue, mem, 0, {}, 100000);
    EXPECT_EQ(Feed(failing, Pattern(100000)).status(), CL_OUT_OF_RESOURCES);
    EXPECT_EQ(Completed(Write(queue, mem, 0, "x", 1, {failing})).status(),
              CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    EXPECT_EQ(Completed(Write(queue, mem, 0, "y", 1)).status(), CL_COMPLETE);
    EXPECT_EQ(Feed(Write(queue, mem, 0, {}, 100000), Pattern(100000)).status(), CL_COMPLETE);
    pb::Command finish;
    finish.mutable_finish()->set_queue_id(queue);
    finish.mutable_finish()->set_event_id(client_->NewId());
    client_->Send(finish);
    EXPECT_EQ(Completed(finish.finish().event_id()).status(), CL_COMPLETE);
    EXPECT_EQ(fake_->behind_failed(), 0);
  }
}

// Transfers that fail half way do not use up the staging memory for those that follow.
TEST_F(MemoryLoopbackTest, FailedTransfersDoNotStarveOthers) {
  const uint64_t context = MakeContext();
  const uint64_t queue = MakeQueue(context);
  const std::string bytes = Pattern(16 << 20);
  const uint64_t mem = MakeBuffer(context, bytes.size());
  for (unsigned i = 0; i < 12; ++i) {
    fake_->FailNext("clEnqueueReadBuffer", CL_OUT_OF_RESOURCES, /*skip=*/1);
    EXPECT_EQ(Completed(Read(queue, mem, 0, bytes.size())).status(), CL_OUT_OF_RESOURCES);
    // The other chunks, so that the next failure is for the next transfer.
    client_->WaitUntil([&] { return fake_->Count("clEnqueueReadBuffer") == 8u * (i + 1); });
  }
  client_->TakeAll();
  EXPECT_EQ(Feed(Write(queue, mem, 0, {}, bytes.size()), bytes).status(), CL_COMPLETE);
}

// A write of no bytes is refused: it could never end.
TEST_F(MemoryLoopbackTest, EmptyWriteIsRefused) {
  const uint64_t context = MakeContext();
  const uint64_t queue = MakeQueue(context);
  const uint64_t mem = MakeBuffer(context, 100);
  EXPECT_EQ(Completed(Write(queue, mem, 0, {}, 0)).status(), CL_INVALID_VALUE);
}

// A rect of few bytes and one of many are both read where the application said, in an out-of-order
// queue too, with pitches given or left at 0.
TEST_F(MemoryLoopbackTest, RectsForwardOriginRegionAndPitches) {
  const uint64_t context = MakeContext();
  const uint64_t queue = MakeQueue(context);
  constexpr size_t kRow = 3000, kRows = 2000, kSlices = 2;
  const std::string bytes = Pattern(kRow * kRows * kSlices);
  const uint64_t mem = MakeBuffer(context, bytes.size(), bytes);
  struct Case {
    size_t width, height;
    bool pitches;
  };
  for (const Case& c : {Case{5, 3, true}, Case{2500, 1900, true}, Case{kRow, kRows, false}}) {
    pb::Command command;
    pb::EnqueueReadBuffer& body = *command.mutable_enqueue_read_buffer();
    const uint64_t event = On(body.mutable_on(), queue);
    body.set_mem_id(mem);
    pb::BufferRect& rect = *body.mutable_rect();
    const size_t x = c.pitches ? 7 : 0, y = c.pitches ? 11 : 0;
    rect.mutable_origin()->set_x(x);
    rect.mutable_origin()->set_y(y);
    rect.mutable_region()->set_x(c.width);
    rect.mutable_region()->set_y(c.height);
    rect.mutable_region()->set_z(2);
    if (c.pitches) rect.set_row_pitch(kRow);
    if (c.pitches) rect.set_slice_pitch(kRow * kRows);
    client_->Send(command);
    std::string expected;
    for (size_t slice = 0; slice < 2; ++slice) {
      for (size_t row = 0; row < c.height; ++row) {
        expected += bytes.substr((slice * kRows + row + y) * kRow + x, c.width);
      }
    }
    std::string got;
    if (expected.size() <= wire::kInlineTransferBytes) {
      EXPECT_EQ(client_->WaitForCompletion(event, &got).status(), CL_COMPLETE);
      const RecordedCall call = fake_->Last("clEnqueueReadBufferRect");
      EXPECT_EQ(RecordedCall(call).arrays["origin"], (std::vector<uint64_t>{7, 11, 0}));
      EXPECT_EQ(RecordedCall(call).arrays["region"], (std::vector<uint64_t>{5, 3, 2}));
      EXPECT_EQ(RecordedCall(call).arrays["pitches"],
                (std::vector<uint64_t>{kRow, kRow * kRows, 5, 15}));
    } else {
      got = Take(event, expected.size());
    }
    EXPECT_TRUE(got == expected) << c.width << "x" << c.height;
  }
}

// The driver's queue learns of a transfer only when something is enqueued behind one that is under
// way: a blocking transfer costs it nothing, and what follows stays in order.
TEST_F(MemoryLoopbackTest, TransfersAreToldToTheDriverWhenTheyMustBe) {
  const uint64_t context = MakeContext();
  const uint64_t queue = MakeQueue(context);
  const uint64_t mem = MakeBuffer(context, 1 << 20);
  const std::string bytes = Pattern(1 << 20);
  SmallRead(queue, mem, 0, 5);  // It has been filled.
  client_->Sync();
  fake_->ClearCalls();
  EXPECT_EQ(Feed(Write(queue, mem, 0, {}, 1 << 20), bytes).status(), CL_COMPLETE);
  EXPECT_EQ(SmallRead(queue, mem, 77, 5), bytes.substr(77, 5));
  EXPECT_EQ(fake_->Count("clEnqueueBarrierWithWaitList"), 0u);
  const uint64_t write = Write(queue, mem, 0, {}, 1 << 20);
  const uint64_t after = Read(queue, mem, 88, 5);
  client_->Sync();
  EXPECT_EQ(fake_->Count("clEnqueueBarrierWithWaitList"), 1u);
  EXPECT_EQ(Feed(write, Pattern((1 << 20) + 9).substr(9)).status(), CL_COMPLETE);
  std::string payload;
  EXPECT_EQ(client_->WaitForCompletion(after, &payload).status(), CL_COMPLETE);
  EXPECT_EQ(payload, Pattern(200).substr(97, 5));
}

// Rects are written where the application said, small with the payload and large in chunks.
TEST_F(MemoryLoopbackTest, RectsAreWritten) {
  const uint64_t context = MakeContext();
  const uint64_t queue = MakeQueue(context);
  const uint64_t mem = MakeBuffer(context, 1 << 20);
  for (const size_t width : {4, 700}) {
    pb::Command command;
    pb::EnqueueWriteBuffer& body = *command.mutable_enqueue_write_buffer();
    const uint64_t event = On(body.mutable_on(), queue);
    body.set_mem_id(mem);
    pb::BufferRect& rect = *body.mutable_rect();
    rect.mutable_origin()->set_x(1);
    rect.mutable_region()->set_x(width);
    rect.mutable_region()->set_y(100);
    rect.mutable_region()->set_z(1);
    rect.set_row_pitch(1024);
    const std::string bytes = Pattern(width * 100);
    const bool small = bytes.size() <= wire::kInlineTransferBytes;
    client_->Send(command, small ? bytes : "");
    EXPECT_EQ((small ? Completed(event) : Feed(event, bytes)).status(), CL_COMPLETE);
    EXPECT_EQ(SmallRead(queue, mem, 99 * 1024, width + 1),
              std::string(1, '\0') + bytes.substr(99 * width, width));
  }
}

// Copies forward both offsets and the size; rect copies both origins, the region and four pitches.
TEST_F(MemoryLoopbackTest, CopiesForwardTheirGeometry) {
  const uint64_t context = MakeContext();
  const uint64_t queue = MakeQueue(context);
  const uint64_t from = MakeBuffer(context, 4096, Pattern(4096));
  const uint64_t to = MakeBuffer(context, 4096);
  pb::Command copy;
  pb::EnqueueCopyBuffer& body = *copy.mutable_enqueue_copy_buffer();
  const uint64_t copied = On(body.mutable_on(), queue);
  body.set_source_id(from);
  body.set_destination_id(to);
  body.set_source_offset(100);
  body.set_destination_offset(200);
  body.set_size(50);
  client_->Send(copy);
  EXPECT_EQ(Completed(copied).status(), CL_COMPLETE);
  EXPECT_EQ(SmallRead(queue, to, 200, 50), Pattern(4096).substr(100, 50));

  pb::Command rect;
  pb::EnqueueCopyBufferRect& rects = *rect.mutable_enqueue_copy_buffer_rect();
  const uint64_t event = On(rects.mutable_on(), queue);
  rects.set_source_id(from);
  rects.set_destination_id(to);
  for (pb::BufferRect* side : {rects.mutable_source(), rects.mutable_destination()}) {
    side->mutable_region()->set_x(8);
    side->mutable_region()->set_y(4);
    side->mutable_region()->set_z(2);
    side->set_row_pitch(32);
    side->set_slice_pitch(256);
  }
  rects.mutable_source()->mutable_origin()->set_x(3);
  rects.mutable_destination()->mutable_origin()->set_y(1);
  client_->Send(rect);
  EXPECT_EQ(Completed(event).status(), CL_COMPLETE);
  RecordedCall call = fake_->Last("clEnqueueCopyBufferRect");
  EXPECT_EQ(call.arrays["from_origin"], (std::vector<uint64_t>{3, 0, 0}));
  EXPECT_EQ(call.arrays["to_origin"], (std::vector<uint64_t>{0, 1, 0}));
  EXPECT_EQ(call.arrays["region"], (std::vector<uint64_t>{8, 4, 2}));
  EXPECT_EQ(call.arrays["pitches"], (std::vector<uint64_t>{32, 256, 32, 256}));
}

// A fill forwards the pattern byte for byte, its offset and size.
TEST_F(MemoryLoopbackTest, FillForwardsThePattern) {
  const uint64_t context = MakeContext();
  const uint64_t queue = MakeQueue(context);
  const uint64_t mem = MakeBuffer(context, 64);
  pb::Command command;
  pb::EnqueueFillBuffer& body = *command.mutable_enqueue_fill_buffer();
  const uint64_t event = On(body.mutable_on(), queue);
  body.set_mem_id(mem);
  body.set_pattern("abcd");
  body.set_offset(8);
  body.set_size(12);
  client_->Send(command);
  EXPECT_EQ(Completed(event).status(), CL_COMPLETE);
  EXPECT_EQ(SmallRead(queue, mem, 6, 16), std::string("\0\0abcdabcdabcd\0\0", 16));
}

// A mapping of heap memory and its end are commands of the driver, with the application's range and
// flags; ending one that is not there is an error.
TEST_F(MemoryLoopbackTest, MapsOfSharedMemory) {
  const uint64_t context = MakeContext(kCpu);
  const uint64_t queue = MakeQueue(context, kCpu, CL_QUEUE_PROFILING_ENABLE);
  const uint64_t mem = MakeBuffer(context, 4096);
  pb::Command map;
  pb::EnqueueMapShared& body = *map.mutable_enqueue_map_shared();
  const uint64_t mapped = On(body.mutable_on(), queue);
  body.set_mem_id(mem);
  body.set_map_flags(CL_MAP_WRITE);
  body.set_offset(16);
  body.set_size(32);
  body.set_map_id(5);
  client_->Send(map);
  EXPECT_EQ(Completed(mapped).status(), CL_COMPLETE);
  const RecordedCall call = fake_->Last("clEnqueueMapBuffer");
  EXPECT_EQ(call.values[3], CL_MAP_WRITE);
  EXPECT_EQ(call.values[4], 16u);
  EXPECT_EQ(call.values[5], 32u);
  for (const cl_int expected : {CL_COMPLETE, CL_INVALID_VALUE}) {
    pb::Command unmap;
    const uint64_t event = On(unmap.mutable_enqueue_unmap_shared()->mutable_on(), queue);
    unmap.mutable_enqueue_unmap_shared()->set_mem_id(mem);
    unmap.mutable_enqueue_unmap_shared()->set_map_id(5);
    client_->Send(unmap);
    EXPECT_EQ(Completed(event).status(), expected);
  }
}

// All objects of a migration reach the driver, with the flags.
TEST_F(MemoryLoopbackTest, MigrateForwardsAllObjects) {
  const uint64_t context = MakeContext();
  const uint64_t queue = MakeQueue(context);
  pb::Command command;
  pb::EnqueueMigrateMemObjects& body = *command.mutable_enqueue_migrate_mem_objects();
  const uint64_t event = On(body.mutable_on(), queue);
  body.add_mem_ids(MakeBuffer(context, 16));
  body.add_mem_ids(MakeBuffer(context, 16));
  body.set_flags(CL_MIGRATE_MEM_OBJECT_HOST);
  client_->Send(command);
  EXPECT_EQ(Completed(event).status(), CL_COMPLETE);
  RecordedCall call = fake_->Last("clEnqueueMigrateMemObjects");
  EXPECT_EQ(call.arrays["objects"].size(), 2u);
  EXPECT_EQ(call.values[3], CL_MIGRATE_MEM_OBJECT_HOST);
}

// The list of a migration is there until the command has run: a driver may read it only then.
TEST_F(MemoryLoopbackTest, MigrationKeepsItsList) {
  const uint64_t context = MakeContext();
  const uint64_t queue = MakeQueue(context);
  const uint64_t gate = MakeUserEvent(context);
  std::vector<uint64_t> events;
  for (int i = 0; i < 3; ++i) {
    pb::Command command;
    pb::EnqueueMigrateMemObjects& body = *command.mutable_enqueue_migrate_mem_objects();
    events.push_back(On(body.mutable_on(), queue, {gate}));
    body.add_mem_ids(MakeBuffer(context, 16));
    body.add_mem_ids(MakeBuffer(context, 16));
    client_->Send(command);
  }
  client_->Sync();
  SetUserEvent(gate, CL_COMPLETE);
  for (const uint64_t event : events) EXPECT_EQ(Completed(event).status(), CL_COMPLETE);
}

// A command that the driver refuses late fails its event with the driver's code, says so in a
// LateError that names the call, and its dependents fail as dependents do.
TEST_F(MemoryLoopbackTest, RefusedCommandFailsItsEventAndDependents) {
  const uint64_t context = MakeContext();
  const uint64_t queue = MakeQueue(context);
  const uint64_t mem = MakeBuffer(context, 16);
  fake_->FailNext("clEnqueueWriteBuffer", CL_OUT_OF_HOST_MEMORY);
  const uint64_t refused = Write(queue, mem, 0, "x", 1);
  const uint64_t dependent = Write(queue, mem, 0, "y", 1, {refused});
  const pb::LateError error =
      client_->WaitFor([](const ReceivedReply& r) { return r.reply.has_late_error(); })
          .reply.late_error();
  EXPECT_EQ(error.status(), CL_OUT_OF_HOST_MEMORY);
  EXPECT_EQ(error.call(), "EnqueueWriteBuffer");
  EXPECT_EQ(error.queue_id(), queue);
  EXPECT_EQ(Completed(refused).status(), CL_OUT_OF_HOST_MEMORY);
  EXPECT_EQ(Completed(dependent).status(), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
}

// Memory of one context is no memory for a queue of another: the driver never sees the pair.
TEST_F(MemoryLoopbackTest, MemoryOfAnotherContextIsRefused) {
  const uint64_t queue = MakeQueue(MakeContext());
  const uint64_t mem = MakeBuffer(MakeContext(), 16);
  EXPECT_EQ(Completed(Write(queue, mem, 0, "x", 1)).status(), CL_INVALID_CONTEXT);
  EXPECT_EQ(fake_->Count("clEnqueueWriteBuffer"), 0u);
}

}  // namespace
}  // namespace sluice::worker
