// SPDX-License-Identifier: Apache-2.0
// proto/commands/queue.proto through the worker.
#include <cstring>

#include "tests/loopback/harness.h"

namespace sluice::worker {
namespace {

class QueueLoopbackTest : public LoopbackTest {
 protected:
  cl_int Create(uint64_t context, const std::vector<uint64_t>& properties) {
    pb::Command command;
    pb::CreateCommandQueue& body = *command.mutable_create_command_queue();
    body.set_queue_id(client_->NewId());
    body.set_context_id(context);
    body.set_device_id(kGpu);
    for (const uint64_t value : properties) body.add_properties(value);
    return client_->Call(command).status();
  }
  uint64_t Finish(uint64_t queue) {
    pb::Command command;
    command.mutable_finish()->set_queue_id(queue);
    command.mutable_finish()->set_event_id(client_->NewId());
    client_->Send(command);
    return command.finish().event_id();
  }
  uint64_t Launch(uint64_t queue, uint64_t kernel, bool with_event = true) {
    pb::Command command;
    pb::EnqueueNdRangeKernel& body = *command.mutable_enqueue_nd_range_kernel();
    const uint64_t event = On(body.mutable_on(), queue);
    if (!with_event) body.mutable_on()->set_event_id(0);
    body.set_kernel_id(kernel);
    body.mutable_range()->add_global(1);
    client_->Send(command);
    return event;
  }
};

// Plain properties go through the older call, others as a list, all as the application gave them.
TEST_F(QueueLoopbackTest, CreateForwardsProperties) {
  const uint64_t context = MakeContext();
  MakeQueue(context, kGpu, CL_QUEUE_PROFILING_ENABLE);
  EXPECT_EQ(fake_->Last("clCreateCommandQueue").values[2], uint64_t{CL_QUEUE_PROFILING_ENABLE});
  pb::Command command;
  pb::CreateCommandQueue& body = *command.mutable_create_command_queue();
  body.set_queue_id(client_->NewId());
  body.set_context_id(context);
  body.set_device_id(kGpu);
  for (const uint64_t value : {CL_QUEUE_PROPERTIES, CL_QUEUE_ON_DEVICE | 1, CL_QUEUE_SIZE, 4096}) {
    body.add_properties(value);
  }
  EXPECT_EQ(client_->Call(command).status(), CL_SUCCESS);
  EXPECT_EQ(
      fake_->Last("clCreateCommandQueueWithProperties").arrays["properties"],
      (std::vector<uint64_t>{CL_QUEUE_PROPERTIES, CL_QUEUE_ON_DEVICE | 1, CL_QUEUE_SIZE, 4096}));
}

// In the debug mode the worker waits for the end of a command before it takes the next, but for one
// that waits for the application it does not.
TEST_F(QueueLoopbackTest, DebugModeTakesOneAtATime) {
  client_.reset();
  SessionOptions options;
  options.sync = true;
  Start(options);
  const uint64_t context = MakeContext();
  const uint64_t queue = MakeQueue(context);
  const uint64_t kernel = MakeKernel(MakeProgram(context));
  client_->Sync();
  fake_->ClearCalls();
  for (int i = 0; i < 3; ++i) Launch(queue, kernel, /*with_event=*/false);
  EXPECT_EQ(Completed(Finish(queue)).status(), CL_COMPLETE);
  std::vector<std::string> calls;
  for (const fake::RecordedCall& call : fake_->Calls()) {
    if (call.name == "clEnqueueNDRangeKernel" || call.name == "clWaitForEvents")
      calls.push_back(call.name);
  }
  const std::string launch = "clEnqueueNDRangeKernel", wait = "clWaitForEvents";
  EXPECT_EQ(calls, (std::vector<std::string>{launch, wait, launch, wait, launch, wait}));

  const uint64_t gate = MakeUserEvent(context);
  pb::Command command;
  const uint64_t gated =
      On(command.mutable_enqueue_marker()->mutable_on(), queue, std::vector<uint64_t>{gate});
  client_->Send(command);
  client_->Sync();
  SetUserEvent(gate, CL_COMPLETE);
  EXPECT_EQ(Completed(gated).status(), CL_COMPLETE);
}

// Hints that the driver has not are taken out of the list before it sees it. A value that is none,
// or a hint for a queue on the device, is refused with the extensions' codes.
TEST_F(QueueLoopbackTest, HintsAreTheWorkersOwn) {
  const uint64_t context = MakeContext();
  const auto create = [&](const std::vector<uint64_t>& properties) {
    return Create(context, properties);
  };
  EXPECT_EQ(create({CL_QUEUE_PRIORITY_KHR, CL_QUEUE_PRIORITY_HIGH_KHR, CL_QUEUE_PROPERTIES,
                    CL_QUEUE_PROFILING_ENABLE, CL_QUEUE_THROTTLE_KHR, CL_QUEUE_THROTTLE_MED_KHR}),
            CL_SUCCESS);
  EXPECT_EQ(fake_->Last("clCreateCommandQueue").values[2], uint64_t{CL_QUEUE_PROFILING_ENABLE});
  EXPECT_EQ(create({CL_QUEUE_PRIORITY_KHR, 3}), CL_INVALID_VALUE);
  EXPECT_EQ(create({CL_QUEUE_PROPERTIES, CL_QUEUE_ON_DEVICE | 1, CL_QUEUE_THROTTLE_KHR,
                    CL_QUEUE_THROTTLE_LOW_KHR}),
            CL_INVALID_QUEUE_PROPERTIES);
}

// A driver that has the hints gets them, each extension's for itself; the codes are the same.
TEST_F(QueueLoopbackTest, HintsOfTheDriversOwnReachIt) {
  const uint64_t context = MakeContext();
  const auto create = [&](const std::vector<uint64_t>& properties) {
    return Create(context, properties);
  };
  const std::vector<uint64_t> both = {CL_QUEUE_PRIORITY_KHR, CL_QUEUE_PRIORITY_LOW_KHR,
                                      CL_QUEUE_THROTTLE_KHR, CL_QUEUE_THROTTLE_HIGH_KHR};
  fake_->set_gpu_extensions("cl_khr_priority_hints cl_khr_throttle_hints");
  EXPECT_EQ(create(both), CL_SUCCESS);
  EXPECT_EQ(fake_->Last("clCreateCommandQueueWithProperties").arrays["properties"], both);
  fake_->set_gpu_extensions("cl_khr_throttle_hints_of_another cl_khr_throttle_hints");
  EXPECT_EQ(create(both), CL_SUCCESS);
  EXPECT_EQ(fake_->Last("clCreateCommandQueueWithProperties").arrays["properties"],
            (std::vector<uint64_t>{CL_QUEUE_THROTTLE_KHR, CL_QUEUE_THROTTLE_HIGH_KHR}));
  EXPECT_EQ(create({CL_QUEUE_THROTTLE_KHR, 0}), CL_INVALID_VALUE);
  EXPECT_EQ(create({CL_QUEUE_THROTTLE_KHR, CL_QUEUE_THROTTLE_LOW_KHR, CL_QUEUE_PROPERTIES,
                    CL_QUEUE_ON_DEVICE | 1}),
            CL_INVALID_QUEUE_PROPERTIES);
  fake_->FailNext("clCreateCommandQueueWithProperties", CL_OUT_OF_RESOURCES);
  EXPECT_EQ(create(both), CL_OUT_OF_RESOURCES);
}

// The driver's verdict on properties and devices is the answer.
TEST_F(QueueLoopbackTest, CreateAnswersErrors) {
  const uint64_t context = MakeContext(kGpu);
  pb::Command command;
  pb::CreateCommandQueue& body = *command.mutable_create_command_queue();
  body.set_queue_id(client_->NewId());
  body.set_context_id(context);
  body.set_device_id(kCpu);
  EXPECT_EQ(client_->Call(command).status(), CL_INVALID_DEVICE);
  body.set_device_id(77);
  EXPECT_EQ(client_->Call(command).status(), CL_INVALID_DEVICE);
  body.set_context_id(77);
  EXPECT_EQ(client_->Call(command).status(), CL_INVALID_CONTEXT);
}

// A flush reaches the driver; so does one for every queue that was used, once the ring runs dry.
TEST_F(QueueLoopbackTest, QueuesAreFlushed) {
  const uint64_t context = MakeContext();
  const uint64_t queue = MakeQueue(context);
  fake_->ClearCalls();
  pb::Command flush;
  flush.mutable_flush()->set_queue_id(queue);
  client_->Send(flush);
  client_->Sync();
  EXPECT_EQ(fake_->Count("clFlush"), 1u);
  const uint64_t kernel = MakeKernel(MakeProgram(context));
  Completed(Launch(queue, kernel));
  client_->WaitUntil([&] { return fake_->Count("clFlush") == 2u; });
}

// A finish completes after everything before it, commands without events too, in both kinds of
// queue; on an empty queue at once.
TEST_F(QueueLoopbackTest, FinishWaitsForAll) {
  const uint64_t context = MakeContext();
  const uint64_t kernel = MakeKernel(MakeProgram(context));
  for (const cl_command_queue_properties flags :
       {cl_command_queue_properties{0},
        cl_command_queue_properties{CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE}}) {
    const uint64_t queue = MakeQueue(context, kGpu, flags);
    EXPECT_EQ(Completed(Finish(queue)).status(), CL_COMPLETE);
    std::atomic<int> runs = 0;
    fake_->set_on_kernel([&](const std::string&) { ++runs; });
    fake_->HoldCommands();
    for (int i = 0; i < 5; ++i) Launch(queue, kernel, /*with_event=*/i % 2 == 0);
    const uint64_t finish = Finish(queue);
    client_->Sync();
    for (const ReceivedReply& r : client_->TakeAll()) EXPECT_FALSE(r.reply.has_completion());
    fake_->ReleaseCommands();
    EXPECT_EQ(Completed(finish).status(), CL_COMPLETE);
    EXPECT_EQ(runs, 5);
    fake_->set_on_kernel(nullptr);
    client_->TakeAll();
  }
}

// When a finish has completed, the client knows of the end of everything before it, whatever the
// order of the driver's callbacks.
TEST_F(QueueLoopbackTest, FinishComesAfterTheCompletionsBeforeIt) {
  const uint64_t context = MakeContext();
  const uint64_t kernel = MakeKernel(MakeProgram(context));
  for (const cl_command_queue_properties flags :
       {cl_command_queue_properties{0},
        cl_command_queue_properties{CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE}}) {
    const uint64_t queue = MakeQueue(context, kGpu, flags);
    fake_->HoldCallbacks();
    std::vector<uint64_t> events;
    for (int i = 0; i < 8; ++i) events.push_back(Launch(queue, kernel));
    const uint64_t finish = Finish(queue);
    client_->Sync();
    client_->TakeAll();
    fake_->ReleaseCallbacks(/*reversed=*/true);
    size_t before = 0;
    while (true) {
      const ReceivedReply received =
          client_->WaitFor([](const ReceivedReply& r) { return r.reply.has_completion(); });
      if (received.reply.completion().event_id() == finish) break;
      ASSERT_LE(++before, events.size());
    }
    EXPECT_EQ(before, events.size());
  }
}

// A command that fails early does not let a finish overtake one that still runs.
TEST_F(QueueLoopbackTest, FinishOutlastsAFailure) {
  const uint64_t context = MakeContext();
  const uint64_t kernel = MakeKernel(MakeProgram(context));
  const uint64_t queue = MakeQueue(context, kGpu, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  const uint64_t gate = MakeUserEvent(context);
  fake_->HoldCommands();
  std::atomic<bool> ran = false;
  fake_->set_on_kernel([&](const std::string&) { ran = true; });
  Launch(queue, kernel);
  pb::Command marker;
  const uint64_t failing = On(marker.mutable_enqueue_marker()->mutable_on(), queue, {gate});
  client_->Send(marker);
  const uint64_t finish = Finish(queue);
  SetUserEvent(gate, -3);
  EXPECT_LT(Completed(failing).status(), 0);
  client_->Sync();
  for (const ReceivedReply& r : client_->TakeAll()) {
    EXPECT_NE(r.reply.completion().event_id(), finish);
  }
  fake_->ReleaseCommands();
  EXPECT_EQ(Completed(finish).status(), CL_COMPLETE);
  EXPECT_TRUE(ran);
}

// The default device queue is the driver's.
TEST_F(QueueLoopbackTest, DefaultDeviceQueueReachesTheDriver) {
  const uint64_t context = MakeContext();
  const uint64_t queue = MakeQueue(context);
  pb::Command standard;
  standard.mutable_set_default_device_command_queue()->set_context_id(context);
  standard.mutable_set_default_device_command_queue()->set_device_id(kGpu);
  standard.mutable_set_default_device_command_queue()->set_queue_id(queue);
  EXPECT_EQ(client_->Call(standard).status(), CL_SUCCESS);
  EXPECT_EQ(fake_->Count("clSetDefaultDeviceCommandQueue"), 1u);
}

}  // namespace
}  // namespace sluice::worker
