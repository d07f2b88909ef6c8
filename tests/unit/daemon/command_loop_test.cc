// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/command_loop.h"

#include "tests/loopback/harness.h"

namespace sluice::worker {
namespace {

using CommandLoopTest = LoopbackTest;

// The first command is 1, and each is one more than the last.
TEST_F(CommandLoopTest, SequenceMustCount) {
  client_->Sync();
  pb::Command command;
  command.mutable_get_host_timer()->set_device_id(kCpu);
  client_->Send(command, {}, /*sequence=*/7);
  EXPECT_NE(client_->WaitForViolation().find("command 7 follows 1"), std::string::npos);
}

// Bytes that are no command, and a command without a body, end the session.
TEST_F(CommandLoopTest, GarbageEndsTheSession) {
  wire::FrameHeader header = {};
  header.sequence = 1;
  header.message_bytes = 4;
  client_->SendRaw(header, "\xff\xff\xff\xff", {});
  EXPECT_NE(client_->WaitForViolation().find("does not parse"), std::string::npos);
  Start({});
  client_->Send(pb::Command());
  EXPECT_NE(client_->WaitForViolation().find("no body"), std::string::npos);
}

// A client that breaks its reply ring is noticed also while the worker sleeps.
TEST_F(CommandLoopTest, BrokenReplyRingEndsTheSession) {
  client_->Sync();
  client_->session().replies().Send(pb::Reply(), wire::Wake::kUrgent);
  client_->BreakReplyRing();
  // From a driver's thread, as a completion would.
  for (int i = 0; i < 100 && !client_->ended(); ++i) {
    client_->session().replies().Send(pb::Reply(), wire::Wake::kUrgent, std::string(100000, 'x'));
  }
  EXPECT_NE(client_->WaitForViolation(/*poll=*/false).find("replies"), std::string::npos);
}

// An id that is in use, or 0, ends the session before the driver is asked to enqueue anything.
TEST_F(CommandLoopTest, UsedIdsEndTheSession) {
  for (const bool zero : {false, true}) {
    Start({});
    const uint64_t context = MakeContext();
    pb::Command command;
    command.mutable_create_user_event()->set_event_id(zero ? 0 : context);
    command.mutable_create_user_event()->set_context_id(context);
    client_->Send(command);
    EXPECT_NE(client_->WaitForViolation().find("is in use"), std::string::npos);
  }
  Start({});
  const uint64_t queue = MakeQueue(MakeContext());
  pb::Command command;
  command.mutable_enqueue_marker()->mutable_on()->set_queue_id(queue);
  command.mutable_enqueue_marker()->mutable_on()->set_event_id(queue);
  client_->Send(command);
  EXPECT_NE(client_->WaitForViolation().find("is in use"), std::string::npos);
  EXPECT_EQ(fake_->Count("clEnqueueMarkerWithWaitList"), 0u);
}

// Objects are counted; what is over the limit is refused, and released ids make room.
TEST_F(CommandLoopTest, ObjectsAreBounded) {
  SessionOptions options;
  options.limits.objects = 5;  // Two devices among them.
  Start(options);
  const uint64_t context = MakeContext();
  MakeBuffer(context, 16);
  const uint64_t last = MakeBuffer(context, 16);
  pb::Command command;
  command.mutable_create_buffer()->set_mem_id(client_->NewId());
  command.mutable_create_buffer()->set_context_id(context);
  command.mutable_create_buffer()->set_size(16);
  EXPECT_EQ(client_->Call(command).status(), CL_OUT_OF_RESOURCES);
  pb::Command release;
  release.mutable_release_object()->set_id(last);
  client_->Send(release);
  EXPECT_EQ(client_->Call(command).status(), CL_SUCCESS);
}

// A read whose event cannot be kept is refused before the driver has its memory.
TEST_F(CommandLoopTest, NothingIsReadIntoMemoryThatGoesAway) {
  SessionOptions options;
  options.limits.objects = 5;
  Start(options);
  const uint64_t context = MakeContext();
  const uint64_t queue = MakeQueue(context);
  const uint64_t mem = MakeBuffer(context, 1000);
  pb::Command command;
  pb::EnqueueReadBuffer& body = *command.mutable_enqueue_read_buffer();
  const uint64_t event = On(body.mutable_on(), queue);
  body.set_mem_id(mem);
  body.set_size(1000);
  client_->Send(command);
  EXPECT_EQ(Completed(event).status(), CL_OUT_OF_RESOURCES);
  EXPECT_EQ(fake_->Count("clEnqueueReadBuffer"), 0u);
}

}  // namespace
}  // namespace sluice::worker
