// SPDX-License-Identifier: Apache-2.0
// Mappings of heap memory (proto/commands/memory.proto) that the driver need not know of.
#include "tests/loopback/harness.h"

namespace sluice::worker {
namespace {

class MapLoopbackTest : public LoopbackTest {
 protected:
  uint64_t Map(uint64_t queue, uint64_t mem, uint64_t id, uint64_t offset, uint64_t size) {
    pb::Command command;
    pb::EnqueueMapShared& body = *command.mutable_enqueue_map_shared();
    const uint64_t event = On(body.mutable_on(), queue);
    body.set_mem_id(mem);
    body.set_map_flags(CL_MAP_READ);
    body.set_offset(offset);
    body.set_size(size);
    body.set_map_id(id);
    client_->Send(command);
    return event;
  }
  uint64_t Unmap(uint64_t queue, uint64_t mem, uint64_t id,
                 const std::vector<uint64_t>& waits = {}) {
    pb::Command command;
    pb::EnqueueUnmapShared& body = *command.mutable_enqueue_unmap_shared();
    const uint64_t event = On(body.mutable_on(), queue, waits);
    body.set_mem_id(mem);
    body.set_map_id(id);
    client_->Send(command);
    return event;
  }
};

// While its queue has nothing to do, a mapping of heap memory and its end need no driver. An end
// that is not idle takes its turn behind the commands that were enqueued meanwhile. A map out of
// bounds is refused.
TEST_F(MapLoopbackTest, IdleMapsNeedNoDriver) {
  const uint64_t context = MakeContext(kCpu);
  const uint64_t queue = MakeQueue(context, kCpu);
  const uint64_t mem = MakeBuffer(context, 4096);
  fake_->ClearCalls();
  const auto map = [&](uint64_t id, uint64_t offset, uint64_t size) {
    return Map(queue, mem, id, offset, size);
  };
  const auto unmap = [&](uint64_t id) { return Unmap(queue, mem, id); };
  EXPECT_EQ(Completed(map(1, 0, 4096)).status(), CL_COMPLETE);
  EXPECT_EQ(Completed(unmap(1)).status(), CL_COMPLETE);
  EXPECT_EQ(Completed(map(2, 1, 4096)).status(), CL_INVALID_VALUE);
  EXPECT_EQ(Completed(map(2, 0, 0)).status(), CL_INVALID_VALUE);
  EXPECT_EQ(Completed(map(2, 0, 4096)).status(), CL_COMPLETE);
  EXPECT_EQ(fake_->Count("clEnqueueMapBuffer"), 0u);
  fake_->HoldCommands();
  pb::Command marker;
  const uint64_t before = On(marker.mutable_enqueue_marker()->mutable_on(), queue);
  client_->Send(marker);
  const uint64_t end = unmap(2);
  client_->Sync();
  for (const ReceivedReply& received : client_->TakeAll())
    EXPECT_NE(received.reply.completion().event_id(), end);
  fake_->ReleaseCommands();
  EXPECT_EQ(Completed(before).status(), CL_COMPLETE);
  EXPECT_EQ(Completed(end).status(), CL_COMPLETE);
  EXPECT_EQ(fake_->Count("clEnqueueUnmapMemObject"), 0u);
}

// In a queue out of order the end of a mapping that the driver does not know waits for its list,
// and for nothing that a marker of the driver's would wait for.
TEST_F(MapLoopbackTest, UnmapsWaitForTheirListOnly) {
  const uint64_t context = MakeContext(kCpu);
  const uint64_t mem = MakeBuffer(context, 4096);
  EXPECT_EQ(Completed(Map(MakeQueue(context, kCpu), mem, 1, 0, 64)).status(), CL_COMPLETE);
  const uint64_t gate = MakeUserEvent(context);
  fake_->ClearCalls();
  const uint64_t queue = MakeQueue(context, kCpu, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  const uint64_t end = Unmap(queue, mem, 1, {gate});
  client_->Sync();
  for (const ReceivedReply& received : client_->TakeAll())
    EXPECT_NE(received.reply.completion().event_id(), end);
  EXPECT_EQ(fake_->Count("clEnqueueMarkerWithWaitList"), 0u);
  SetUserEvent(gate, CL_COMPLETE);
  EXPECT_EQ(Completed(end).status(), CL_COMPLETE);
}

// There is an end to the maps that a memory object may have: with it they are refused, whether or
// not the driver would be asked, until one is given back.
TEST_F(MapLoopbackTest, MapsOfAnObjectAreBounded) {
  constexpr uint64_t kMost = 4096;
  const uint64_t context = MakeContext(kCpu);
  const uint64_t queue = MakeQueue(context, kCpu);
  const uint64_t mem = MakeBuffer(context, 4096);
  for (uint64_t id = 1; id <= kMost; ++id)
    ASSERT_EQ(Completed(Map(queue, mem, id, 0, 16)).status(), CL_COMPLETE) << id;
  EXPECT_EQ(Completed(Map(queue, mem, kMost + 1, 0, 16)).status(), CL_OUT_OF_HOST_MEMORY);
  const uint64_t driven = MakeQueue(context, kCpu, CL_QUEUE_PROFILING_ENABLE);
  EXPECT_EQ(Completed(Map(driven, mem, kMost + 1, 0, 16)).status(), CL_OUT_OF_HOST_MEMORY);
  EXPECT_EQ(fake_->Count("clEnqueueMapBuffer"), 0u);
  EXPECT_EQ(Completed(Unmap(queue, mem, 1)).status(), CL_COMPLETE);
  EXPECT_EQ(Completed(Map(queue, mem, kMost + 1, 0, 16)).status(), CL_COMPLETE);
}

}  // namespace
}  // namespace sluice::worker
