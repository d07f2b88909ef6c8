// SPDX-License-Identifier: Apache-2.0
// Mappings of heap memory (proto/commands/memory.proto) that the driver need not know of.
#include "tests/loopback/harness.h"

namespace sluice {
namespace {

using MapLoopbackTest = LoopbackTest;

// While its queue has nothing to do, a mapping of heap memory and its end need no driver; an end
// that is not idle takes its turn behind what was enqueued meanwhile; what is out of bounds is
// refused.
TEST_F(MapLoopbackTest, IdleMapsNeedNoDriver) {
  const uint64_t context = MakeContext(kCpu);
  const uint64_t queue = MakeQueue(context, kCpu);
  const uint64_t mem = MakeBuffer(context, 4096);
  fake_->ClearCalls();
  const auto map = [&](uint64_t id, uint64_t offset, uint64_t size) {
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
  };
  const auto unmap = [&](uint64_t id) {
    pb::Command command;
    const uint64_t event = On(command.mutable_enqueue_unmap_shared()->mutable_on(), queue);
    command.mutable_enqueue_unmap_shared()->set_mem_id(mem);
    command.mutable_enqueue_unmap_shared()->set_map_id(id);
    client_->Send(command);
    return event;
  };
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

}  // namespace
}  // namespace sluice
