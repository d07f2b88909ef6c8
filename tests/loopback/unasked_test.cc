// SPDX-License-Identifier: Apache-2.0
// Creations that nobody waits for (Command.unasked_for), through the worker.
#include "tests/loopback/harness.h"

namespace sluice::worker {
namespace {

class UnaskedLoopbackTest : public LoopbackTest {
 protected:
  uint64_t Create(uint64_t context, uint64_t size) {
    pb::Command command;
    command.set_unasked_for(context);
    pb::CreateBuffer& body = *command.mutable_create_buffer();
    body.set_mem_id(client_->NewId());
    body.set_context_id(context);
    body.set_size(size);
    client_->Send(command);
    return body.mem_id();
  }
  uint64_t CreatePart(uint64_t context, uint64_t parent) {
    pb::Command command;
    command.set_unasked_for(context);
    pb::CreateSubBuffer& body = *command.mutable_create_sub_buffer();
    body.set_mem_id(client_->NewId());
    body.set_parent_id(parent);
    body.set_size(16);
    client_->Send(command);
    return body.mem_id();
  }
  pb::CreationFailed NextFailure() {
    return client_
        ->WaitFor([](const ReceivedReply& one) { return one.reply.has_creation_failed(); })
        .reply.creation_failed();
  }
  cl_int Fill(uint64_t queue, uint64_t mem) {
    pb::Command command;
    pb::EnqueueFillBuffer& body = *command.mutable_enqueue_fill_buffer();
    const uint64_t event = On(body.mutable_on(), queue);
    body.set_mem_id(mem);
    body.set_pattern("x");
    body.set_size(16);
    client_->Send(command);
    return Completed(event).status();
  }
  void Release(uint64_t id) {
    pb::Command command;
    command.mutable_release_object()->set_id(id);
    client_->Send(command);
  }
};

// A creation that succeeds has no answer, and its object is there for the next command.
TEST_F(UnaskedLoopbackTest, SuccessIsSilent) {
  const uint64_t context = MakeContext();
  const uint64_t queue = MakeQueue(context);
  const uint64_t mem = Create(context, 64);
  EXPECT_EQ(Fill(queue, mem), CL_COMPLETE);
  for (const ReceivedReply& one : client_->TakeAll()) EXPECT_FALSE(one.reply.has_answer());
}

// The driver's refusal is told to the context, once; the object's id, and what is made from it,
// stand for the failure with the driver's code.
TEST_F(UnaskedLoopbackTest, FailedObjectFailsWhatNamesIt) {
  const uint64_t context = MakeContext();
  const uint64_t queue = MakeQueue(context);
  fake_->FailNext("clCreateBuffer", CL_OUT_OF_RESOURCES);
  const uint64_t mem = Create(context, 64);
  const pb::CreationFailed failed = NextFailure();
  EXPECT_EQ(failed.context_id(), context);
  EXPECT_EQ(failed.status(), CL_OUT_OF_RESOURCES);
  EXPECT_EQ(failed.call(), "CreateBuffer");
  EXPECT_EQ(Fill(queue, mem), CL_OUT_OF_RESOURCES);

  const uint64_t part = CreatePart(context, mem);
  EXPECT_EQ(NextFailure().status(), CL_OUT_OF_RESOURCES);
  EXPECT_EQ(Fill(queue, part), CL_OUT_OF_RESOURCES);
  pb::Command ask;
  ask.mutable_get_info()->set_kind(pb::GetInfo::MEMORY);
  ask.mutable_get_info()->set_id(mem);
  ask.mutable_get_info()->set_param_name(CL_MEM_SIZE);
  EXPECT_EQ(client_->Call(ask).status(), CL_OUT_OF_RESOURCES);

  // A command that names no failed object has its own code.
  EXPECT_EQ(Fill(queue, client_->NewId()), CL_INVALID_MEM_OBJECT);
  Release(part);
  Release(mem);
  EXPECT_EQ(Fill(queue, mem), CL_INVALID_MEM_OBJECT);
}

// A launch with a failed object for an argument fails with its code, and so does the next, which
// does not set it again; once it is set to something else, the kernel runs.
TEST_F(UnaskedLoopbackTest, FailedArgumentIsNotForgotten) {
  const uint64_t context = MakeContext();
  const uint64_t queue = MakeQueue(context);
  const uint64_t kernel = MakeKernel(MakeProgram(context));
  const uint64_t good = MakeBuffer(context, 64);
  fake_->FailNext("clCreateBuffer", CL_OUT_OF_HOST_MEMORY);
  const uint64_t bad = Create(context, 64);
  const auto launch = [&](uint64_t argument) {
    pb::Command command;
    pb::EnqueueNdRangeKernel& body = *command.mutable_enqueue_nd_range_kernel();
    const uint64_t event = On(body.mutable_on(), queue);
    body.set_kernel_id(kernel);
    body.mutable_range()->add_global(16);
    if (argument != 0) body.add_changed_args()->set_mem_id(argument);
    client_->Send(command);
    return Completed(event).status();
  };
  EXPECT_EQ(launch(good), CL_COMPLETE);
  EXPECT_EQ(launch(bad), CL_OUT_OF_HOST_MEMORY);
  EXPECT_EQ(launch(0), CL_OUT_OF_HOST_MEMORY);
  EXPECT_EQ(launch(good), CL_COMPLETE);
  EXPECT_EQ(launch(0), CL_COMPLETE);
}

// Whoever asked to be told of a failed object's end is told when it is released.
TEST_F(UnaskedLoopbackTest, EndOfFailedObjectIsTold) {
  const uint64_t context = MakeContext();
  fake_->FailNext("clCreateBuffer", CL_OUT_OF_RESOURCES);
  const uint64_t mem = Create(context, 64);
  pb::Command watch;
  watch.mutable_watch_destruction()->set_id(mem);
  client_->Send(watch);
  client_->Sync();
  for (const ReceivedReply& one : client_->TakeAll()) EXPECT_FALSE(one.reply.has_destroyed());
  Release(mem);
  client_->WaitFor([&](const ReceivedReply& one) { return one.reply.destroyed().id() == mem; });
}

// A queue that could not be made fails its commands and its Finish with its code.
TEST_F(UnaskedLoopbackTest, FailedQueueFailsItsCommands) {
  const uint64_t context = MakeContext();
  const uint64_t mem = MakeBuffer(context, 64);
  fake_->FailNext("clCreateCommandQueue", CL_OUT_OF_HOST_MEMORY);
  pb::Command command;
  command.set_unasked_for(context);
  pb::CreateCommandQueue& body = *command.mutable_create_command_queue();
  body.set_queue_id(client_->NewId());
  body.set_context_id(context);
  body.set_device_id(kGpu);
  client_->Send(command);
  EXPECT_EQ(NextFailure().status(), CL_OUT_OF_HOST_MEMORY);
  EXPECT_EQ(Fill(body.queue_id(), mem), CL_OUT_OF_HOST_MEMORY);
  pb::Command finish;
  finish.mutable_finish()->set_queue_id(body.queue_id());
  finish.mutable_finish()->set_event_id(client_->NewId());
  client_->Send(finish);
  EXPECT_EQ(Completed(finish.finish().event_id()).status(), CL_OUT_OF_HOST_MEMORY);
}

// Answers to creations say how far the session's limits are.
TEST_F(UnaskedLoopbackTest, AnswersCarryALease) {
  SessionOptions options;
  options.limits.memory_bytes = 1000;
  options.limits.objects = 100;
  Start(options);
  const uint64_t context = MakeContext();
  pb::Command command;
  pb::CreateBuffer& body = *command.mutable_create_buffer();
  body.set_mem_id(client_->NewId());
  body.set_context_id(context);
  body.set_size(300);
  const pb::Lease first = client_->Call(command).lease();
  EXPECT_EQ(first.memory_bytes(), 700u);
  body.set_mem_id(client_->NewId());
  const pb::Lease second = client_->Call(command).lease();
  EXPECT_EQ(second.memory_bytes(), 400u);
  EXPECT_EQ(second.objects(), first.objects() - 1);
}

// A build's answer describes the program's kernels, which are gone again: the program may be built
// once more.
TEST_F(UnaskedLoopbackTest, BuildDescribesKernels) {
  const uint64_t context = MakeContext();
  const uint64_t program = MakeProgram(context, "kernel void k() {}");
  pb::Command build;
  build.mutable_build_program()->set_program_id(program);
  const pb::Answer answer = client_->Call(build);
  EXPECT_EQ(answer.status(), CL_SUCCESS);
  ASSERT_GT(answer.count(), 0u);
  ASSERT_EQ(answer.kernels_size(), static_cast<int>(answer.count()));
  const pb::Command create = [&] {
    pb::Command command;
    command.mutable_create_kernel()->set_kernel_id(client_->NewId());
    command.mutable_create_kernel()->set_program_id(program);
    command.mutable_create_kernel()->set_name(answer.kernels(0).name());
    return command;
  }();
  // As the answer to the kernel's own creation does.
  EXPECT_EQ(client_->Call(create).kernels(0).SerializeAsString(),
            answer.kernels(0).SerializeAsString());
}

// A context's answer has the driver's image formats.
TEST_F(UnaskedLoopbackTest, ContextTellsImageFormats) {
  pb::Command command;
  pb::CreateContext& body = *command.mutable_create_context();
  body.set_context_id(client_->NewId());
  body.add_device_ids(kGpu);
  const pb::ContextPlacement placement = client_->Call(command).context();
  EXPECT_TRUE(placement.takes_unasked());
  ASSERT_GT(placement.image_formats_size(), 0);
  for (const pb::SupportedImageFormats& one : placement.image_formats()) {
    pb::Command ask;
    ask.mutable_get_supported_image_formats()->set_context_id(body.context_id());
    ask.mutable_get_supported_image_formats()->set_flags(one.flags());
    ask.mutable_get_supported_image_formats()->set_image_type(one.image_type());
    EXPECT_EQ(client_->Call(ask).data(), one.formats());
  }
}

}  // namespace
}  // namespace sluice::worker
