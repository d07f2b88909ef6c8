// SPDX-License-Identifier: Apache-2.0
// proto/commands/context.proto through the worker.
#include "tests/loopback/harness.h"

namespace sluice::worker {
namespace {

class ContextLoopbackTest : public LoopbackTest {
 protected:
  void Release(uint64_t id) {
    pb::Command command;
    command.mutable_release_object()->set_id(id);
    client_->Send(command);
  }
};

// The driver's context is of the application's devices, with the platform and the forwarded
// properties before the terminator.
TEST_F(ContextLoopbackTest, CreateContextForwardsDevicesAndProperties) {
  pb::Command command;
  pb::CreateContext& body = *command.mutable_create_context();
  body.set_context_id(client_->NewId());
  body.add_device_ids(kCpu);
  body.add_device_ids(kGpu);
  body.add_properties(CL_CONTEXT_INTEROP_USER_SYNC);
  body.add_properties(CL_TRUE);
  const pb::Answer answer = client_->Call(command);
  EXPECT_EQ(answer.status(), CL_SUCCESS);
  EXPECT_FALSE(answer.context().buffers_in_heap());
  fake::RecordedCall call = fake_->Last("clCreateContext");
  EXPECT_EQ(call.values[1], 2u);
  const std::vector<uint64_t>& properties = call.arrays["properties"];
  ASSERT_EQ(properties.size(), 4u);
  EXPECT_EQ(properties[0], uint64_t{CL_CONTEXT_PLATFORM});
  EXPECT_EQ(properties[2], uint64_t{CL_CONTEXT_INTEROP_USER_SYNC});
  EXPECT_EQ(properties[3], uint64_t{CL_TRUE});
}

// cl_khr_initialize_memory is passed through: its name where the driver has it, its property, and
// the refusal of a driver that has not.
TEST_F(ContextLoopbackTest, MemoryIsInitialisedByTheDriver) {
  const auto device_has = [&] {
    pb::Command ask;
    ask.mutable_get_info()->set_kind(pb::GetInfo::DEVICE);
    ask.mutable_get_info()->set_id(kGpu);
    ask.mutable_get_info()->set_param_name(CL_DEVICE_EXTENSIONS);
    const std::string names(client_->Call(ask).data());
    return names.find("cl_khr_initialize_memory") != std::string::npos;
  };
  EXPECT_FALSE(device_has());
  fake_->set_gpu_extensions("cl_fake_secret cl_khr_initialize_memory");
  EXPECT_TRUE(device_has());
  for (const uint64_t bits : {1, 2, 3}) {
    pb::Command command;
    pb::CreateContext& body = *command.mutable_create_context();
    body.set_context_id(client_->NewId());
    body.add_device_ids(kGpu);
    body.add_properties(CL_CONTEXT_MEMORY_INITIALIZE_KHR);
    body.add_properties(bits);
    ASSERT_EQ(client_->Call(command).status(), CL_SUCCESS);
    const std::vector<uint64_t> properties = fake_->Last("clCreateContext").arrays["properties"];
    ASSERT_EQ(properties.size(), 4u);
    EXPECT_EQ(properties[2], uint64_t{CL_CONTEXT_MEMORY_INITIALIZE_KHR});
    EXPECT_EQ(properties[3], bits);
    // Section 9.11.1: "context creation fails with error code of CL_INVALID_PROPERTY".
    fake_->FailNext("clCreateContext", CL_INVALID_PROPERTY);
    body.set_context_id(client_->NewId());
    EXPECT_EQ(client_->Call(command).status(), CL_INVALID_PROPERTY);
  }
}

// Buffers of a context with only CPU devices lie in the heap.
TEST_F(ContextLoopbackTest, CpuContextKeepsBuffersInTheHeap) {
  pb::Command command;
  command.mutable_create_context()->set_context_id(client_->NewId());
  command.mutable_create_context()->add_device_ids(kCpu);
  EXPECT_TRUE(client_->Call(command).context().buffers_in_heap());
}

// The client learns what concerns it of the driver's ways.
TEST_F(ContextLoopbackTest, TellsTheDriversWays) {
  struct Case {
    cl_uint vendor;
    const char* version;
    bool overtakes;
    bool images_of_imports;
  };
  for (const Case& one :
       {Case{0, "OpenCL 3.0 fake", false, true}, Case{0, kPoclVersion, true, true},
        Case{kNvidia, "OpenCL 3.0 CUDA", false, false}}) {
    Start({}, one.vendor, one.version);
    pb::Command command;
    command.mutable_create_context()->set_context_id(client_->NewId());
    command.mutable_create_context()->add_device_ids(kGpu);
    const pb::Answer answer = client_->Call(command);
    EXPECT_EQ(answer.context().overtakes(), one.overtakes) << one.version;
    EXPECT_EQ(answer.context().images_of_imports(), one.images_of_imports) << one.version;
  }
}

// A driver that makes no context any more, after a fault has ended all that it had: the client is
// told that another session may. Not without a fault, and not of a driver whose contexts outlive it.
TEST_F(ContextLoopbackTest, TellsThatAFaultHasEndedTheDriver) {
  for (const cl_uint vendor : {cl_uint{kNvidia}, cl_uint{0}}) {
    for (const bool fault : {true, false}) {
      Start({}, vendor);
      const uint64_t context = MakeContext();
      if (fault) SetUserEvent(MakeUserEvent(context), -1);
      pb::Command command;
      command.mutable_create_context()->add_device_ids(kGpu);
      fake_->FailNext("clCreateContext", -9999);
      command.mutable_create_context()->set_context_id(client_->NewId());
      const pb::Answer answer = client_->Call(command);
      EXPECT_EQ(answer.status(), -9999);
      EXPECT_EQ(answer.session_is_spent(), fault && vendor == kNvidia);
    }
  }
}

// A driver's refusal is the answer, unchanged, and leaves nothing behind.
TEST_F(ContextLoopbackTest, RefusalIsTheAnswer) {
  fake_->FailNext("clCreateContext", CL_DEVICE_NOT_AVAILABLE);
  pb::Command command;
  command.mutable_create_context()->set_context_id(client_->NewId());
  command.mutable_create_context()->add_device_ids(kGpu);
  EXPECT_EQ(client_->Call(command).status(), CL_DEVICE_NOT_AVAILABLE);
  EXPECT_EQ(client_->Call(command).status(), CL_SUCCESS);
}

// The driver's answers about a context reach the client; a driver that has none (Oclgrind) harms
// nobody.
TEST_F(ContextLoopbackTest, DriversTellOfErrors) {
  pb::Command command;
  const uint64_t id = client_->NewId();
  command.mutable_create_context()->set_context_id(id);
  command.mutable_create_context()->add_device_ids(kGpu);
  ASSERT_EQ(client_->Call(command).status(), CL_SUCCESS);
  fake_->TellContext("of nobody", /*with_data=*/false);
  fake_->TellContext("of this one", /*with_data=*/true);
  const ReceivedReply told =
      client_->WaitFor([](const ReceivedReply& one) { return one.reply.has_context_notify(); });
  EXPECT_EQ(told.reply.context_notify().context_id(), id);
  EXPECT_EQ(told.reply.context_notify().message(), "of this one");
}

// Devices that are none, or none at all, are answered as OpenCL does.
TEST_F(ContextLoopbackTest, BadDevices) {
  pb::Command command;
  command.mutable_create_context()->set_context_id(client_->NewId());
  EXPECT_EQ(client_->Call(command).status(), CL_INVALID_VALUE);
  command.mutable_create_context()->add_device_ids(99);
  EXPECT_EQ(client_->Call(command).status(), CL_INVALID_DEVICE);
}

// When all of a session's objects have been released, the driver has none left.
TEST_F(ContextLoopbackTest, ReleaseFreesTheDriversObjects) {
  const int before = fake_->live_objects();
  const uint64_t context = MakeContext();
  const uint64_t queue = MakeQueue(context);
  const uint64_t mem = MakeBuffer(context, 4096);
  const uint64_t program = MakeProgram(context);
  const uint64_t kernel = MakeKernel(program);
  const uint64_t event = MakeUserEvent(context);
  pb::Command marker;
  const uint64_t marked = On(marker.mutable_enqueue_marker()->mutable_on(), queue);
  client_->Send(marker);
  Completed(marked);
  EXPECT_GT(fake_->live_objects(), before);
  // The build thread forgets its program only after it has answered.
  for (const uint64_t id : {context, queue, mem, kernel, program, event, marked}) Release(id);
  client_->Sync();
  client_->WaitUntil([&] { return fake_->live_objects() == before; });
}

// A watched object's end is told once the driver has destroyed it, not when it is released: a
// sub-buffer keeps its parent, a buffer its context.
TEST_F(ContextLoopbackTest, DestructionIsToldWhenItHappens) {
  const uint64_t context = MakeContext();
  const uint64_t parent = MakeBuffer(context, 4096);
  pb::Command make;
  make.mutable_create_sub_buffer()->set_mem_id(client_->NewId());
  make.mutable_create_sub_buffer()->set_parent_id(parent);
  make.mutable_create_sub_buffer()->set_size(128);
  EXPECT_EQ(client_->Call(make).status(), CL_SUCCESS);
  for (const uint64_t id : {parent, context}) {
    pb::Command watch;
    watch.mutable_watch_destruction()->set_id(id);
    client_->Send(watch);
  }
  Release(parent);
  Release(context);
  client_->Sync();
  for (const ReceivedReply& received : client_->TakeAll()) {
    EXPECT_FALSE(received.reply.has_destroyed());
  }
  Release(make.create_sub_buffer().mem_id());
  for (const uint64_t id : {parent, context}) {
    client_->WaitFor([=](const ReceivedReply& r) { return r.reply.destroyed().id() == id; });
  }
}

// Whoever asks twice to be told of an object's end is told once.
TEST_F(ContextLoopbackTest, DestructionIsToldOnce) {
  const uint64_t mem = MakeBuffer(MakeContext(), 64);
  for (int i = 0; i < 3; ++i) {
    pb::Command watch;
    watch.mutable_watch_destruction()->set_id(mem);
    client_->Send(watch);
  }
  Release(mem);
  client_->WaitFor([=](const ReceivedReply& r) { return r.reply.destroyed().id() == mem; });
  client_->Sync();
  for (const ReceivedReply& received : client_->TakeAll())
    EXPECT_FALSE(received.reply.has_destroyed());
}

// Where the driver never says that it has destroyed an object, its end is told once everything has
// ended that was enqueued before its release. This holds in queues of both kinds, released ones
// too, whatever fails there.
TEST_F(ContextLoopbackTest, DestructionIsToldWithoutTheDriver) {
  fake_->set_has_callbacks(false);
  const uint64_t context = MakeContext();
  const uint64_t idle = MakeBuffer(context, 64);
  const uint64_t used = MakeBuffer(context, 64);
  for (const uint64_t id : {idle, used}) {
    pb::Command watch;
    watch.mutable_watch_destruction()->set_id(id);
    client_->Send(watch);
  }
  Release(idle);
  client_->WaitFor([=](const ReceivedReply& r) { return r.reply.destroyed().id() == idle; });
  const uint64_t gates[] = {MakeUserEvent(context), MakeUserEvent(context), MakeUserEvent(context)};
  const auto fill_behind = [&](uint64_t gate, cl_command_queue_properties flags) {
    const uint64_t queue = MakeQueue(context, kGpu, flags);
    pb::Command fill;
    On(fill.mutable_enqueue_fill_buffer()->mutable_on(), queue, {gate});
    fill.mutable_enqueue_fill_buffer()->mutable_on()->set_event_id(0);
    fill.mutable_enqueue_fill_buffer()->set_mem_id(used);
    fill.mutable_enqueue_fill_buffer()->set_pattern("abcd");
    fill.mutable_enqueue_fill_buffer()->set_size(64);
    client_->Send(fill);
    return queue;
  };
  Release(fill_behind(gates[0], 0));
  fill_behind(gates[1], 0);
  fill_behind(gates[2], CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  Release(used);
  for (const uint64_t gate : gates) {
    client_->Sync();
    for (const ReceivedReply& received : client_->TakeAll()) {
      EXPECT_FALSE(received.reply.has_destroyed());
      EXPECT_FALSE(received.reply.has_late_error());
    }
    SetUserEvent(gate, gate == gates[1] ? -5 : CL_COMPLETE);
  }
  client_->WaitFor([=](const ReceivedReply& r) { return r.reply.destroyed().id() == used; });
}

// Watching what is not there is told as a late error, and harms nothing.
TEST_F(ContextLoopbackTest, WatchingNothing) {
  pb::Command watch;
  watch.mutable_watch_destruction()->set_id(12345);
  client_->Send(watch);
  client_->WaitFor([](const ReceivedReply& r) { return r.reply.has_late_error(); });
  client_->Sync();
}

}  // namespace
}  // namespace sluice::worker
