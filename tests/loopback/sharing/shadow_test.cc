// SPDX-License-Identifier: Apache-2.0
// proto/commands/sharing/shadow.proto through the worker: the driver is the fake one, the memory
// is real (Vulkan on the CPU). Semaphores are in shadow_semaphore_test.cc.
#include "daemon/worker/memory/external_memory_names.h"
#include "tests/loopback/sharing/shadow_fixture.h"

namespace sluice::worker {
namespace {

// On a CPU the driver works in the memory itself, and the client has its descriptor, under the
// buffer's id, by the time the answer is there.
TEST_F(ShadowLoopbackTest, CpuDeviceWorksInTheMemory) {
  const uint64_t context = MakeContext(kCpu);
  const uint64_t queue = MakeQueue(context, kCpu);
  const uint64_t mem = client_->NewId();
  const pb::Answer answer = Create(mem, context);
  ASSERT_EQ(answer.status(), CL_SUCCESS) << answer.shadow().reason();
  EXPECT_EQ(client_->session().counts.shadowed, 1u);
  os::UniqueFd descriptor;
  const wire::HandleMessage message = client_->TakeHandle(&descriptor);
  EXPECT_EQ(message.type, wire::HandleMessageType::kShadowMemory);
  EXPECT_EQ(message.address, mem);
  EXPECT_EQ(message.size, answer.shadow().allocation_bytes());
  EXPECT_GT(answer.shadow().allocation_bytes(), kBytes);
  const os::DeviceUuid& uuid = vulkan_->device_uuid();
  EXPECT_EQ(answer.shadow().device_uuid(), std::string(uuid.begin(), uuid.end()));
  const fake::RecordedCall call = fake_->Last("clCreateBuffer");
  EXPECT_EQ(call.values[1], CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR);
  EXPECT_EQ(call.values[2], kBytes);
  EXPECT_EQ(Read(queue, mem, 1000), std::string(1000, '\0'));
}

// Nothing needs to be told to such a driver, but the commands keep their place among others: each
// waits for what it must wait for.
TEST_F(ShadowLoopbackTest, CpuHandOverWaitsLikeACommand) {
  const uint64_t context = MakeContext(kCpu);
  const uint64_t queue = MakeQueue(context, kCpu);
  const uint64_t mem = client_->NewId();
  ASSERT_EQ(Create(mem, context).status(), CL_SUCCESS);
  EXPECT_EQ(Completed(Acquire(queue, mem)).status(), CL_COMPLETE);
  const uint64_t gate = MakeUserEvent(context);
  const uint64_t release = Release(queue, mem, {gate});
  client_->Sync();
  for (const ReceivedReply& received : client_->TakeAll()) {
    EXPECT_NE(received.reply.completion().event_id(), release);
  }
  SetUserEvent(gate, CL_COMPLETE);
  EXPECT_EQ(Completed(release).status(), CL_COMPLETE);
  const uint64_t failed_gate = MakeUserEvent(context);
  const uint64_t failed = Acquire(queue, mem, {failed_gate});
  SetUserEvent(failed_gate, -5);
  EXPECT_LT(Completed(failed).status(), 0);
}

// Any other driver imports the descriptor, and is told of each change of hands.
TEST_F(ShadowLoopbackTest, GpuImportsTheMemory) {
  GiveGpuItsUuid();
  const uint64_t context = MakeContext(kGpu);
  const uint64_t queue = MakeQueue(context, kGpu);
  const uint64_t mem = client_->NewId();
  const pb::Answer answer = Create(mem, context);
  ASSERT_EQ(answer.status(), CL_SUCCESS) << answer.shadow().reason();
  const std::vector<uint64_t> properties =
      fake_->Last("clCreateBufferWithProperties").arrays["properties"];
  ASSERT_GE(properties.size(), 4u);
  EXPECT_EQ(properties[0], CL_EXTERNAL_MEMORY_HANDLE_OPAQUE_FD_KHR);
  EXPECT_EQ(properties[2], CL_MEM_DEVICE_HANDLE_LIST_KHR);
  EXPECT_EQ(properties[3], reinterpret_cast<uint64_t>(fake::FakeCl::gpu()));
  EXPECT_EQ(Completed(Acquire(queue, mem)).status(), CL_COMPLETE);
  EXPECT_EQ(Completed(Release(queue, mem)).status(), CL_COMPLETE);
  EXPECT_EQ(fake_->ownership_changes(), (std::vector<bool>{true, false}));
}

// The driver is told of a change of hands only when the command may run, since it may wait inside
// the call. A command that waits for it waits, and fails if it does.
TEST_F(ShadowLoopbackTest, DriverIsToldWhenTheCommandMayRun) {
  GiveGpuItsUuid();
  const uint64_t context = MakeContext(kGpu);
  for (const cl_command_queue_properties flags : {0, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE}) {
    const uint64_t queue = MakeQueue(context, kGpu, flags);
    const uint64_t mem = client_->NewId();
    ASSERT_EQ(Create(mem, context).status(), CL_SUCCESS);
    const size_t told = fake_->ownership_changes().size();
    const uint64_t gate = MakeUserEvent(context);
    const uint64_t acquired = Acquire(queue, mem, {gate});
    const uint64_t released = Release(queue, mem, {acquired});
    client_->Sync();
    EXPECT_EQ(fake_->ownership_changes().size(), told);
    SetUserEvent(gate, CL_COMPLETE);
    EXPECT_EQ(Completed(acquired).status(), CL_COMPLETE);
    EXPECT_EQ(Completed(released).status(), CL_COMPLETE);
    EXPECT_EQ(fake_->ownership_changes().size(), told + 2);
    const uint64_t failing = MakeUserEvent(context);
    const uint64_t failed = Acquire(queue, mem, {failing});
    SetUserEvent(failing, -7);
    EXPECT_LT(Completed(failed).status(), 0);
    EXPECT_EQ(fake_->ownership_changes().size(), told + 2);
  }
}

// A driver that cannot import is an answer with the reason, and leaves nothing behind: neither an
// object, nor quota, nor a descriptor under way.
TEST_F(ShadowLoopbackTest, WhatCannotBeIsSaid) {
  const uint64_t context = MakeContext(kGpu);
  const uint64_t used = client_->session().quota().memory_bytes();
  const uint64_t mem = client_->NewId();
  pb::Answer answer = Create(mem, context);
  EXPECT_EQ(answer.status(), CL_INVALID_OPERATION);
  EXPECT_NE(answer.shadow().reason().find("cl_khr_external_memory_opaque_fd"), std::string::npos);
  GiveGpuItsUuid();
  fake_->FailNext("clCreateBufferWithProperties", CL_INVALID_VALUE);
  answer = Create(mem, context);
  EXPECT_EQ(answer.status(), CL_INVALID_OPERATION);
  EXPECT_NE(answer.shadow().reason().find("does not import"), std::string::npos);
  fake_->set_gpu_uuid(std::array<uint8_t, 16>{7});
  answer = Create(mem, context);
  EXPECT_EQ(answer.status(), CL_INVALID_OPERATION);
  EXPECT_NE(answer.shadow().reason().find("no Vulkan device with the UUID 07"), std::string::npos);
  EXPECT_EQ(client_->session().quota().memory_bytes(), used);
}

// Sizes over the quota or of no meaning, and contexts that are none, are refused.
TEST_F(ShadowLoopbackTest, BadArgumentsAreRefused) {
  SessionOptions options;
  options.limits.memory_bytes = 1 << 20;
  Start(options);
  const uint64_t context = MakeContext(kCpu);
  EXPECT_EQ(Create(client_->NewId(), context, 0).status(), CL_INVALID_BUFFER_SIZE);
  for (const uint64_t size : {uint64_t{2} << 20, ~uint64_t{0}}) {
    EXPECT_EQ(Create(client_->NewId(), context, size).status(), CL_MEM_OBJECT_ALLOCATION_FAILURE);
  }
  EXPECT_EQ(Create(client_->NewId(), client_->NewId()).status(), CL_INVALID_CONTEXT);
}

// A buffer that is no shadow does not change hands.
TEST_F(ShadowLoopbackTest, OnlyShadowsChangeHands) {
  const uint64_t context = MakeContext(kCpu);
  const uint64_t queue = MakeQueue(context, kCpu);
  const uint64_t mem = MakeBuffer(context, 1000);
  EXPECT_EQ(Completed(Acquire(queue, mem)).status(), CL_INVALID_MEM_OBJECT);
  EXPECT_EQ(Completed(Release(queue, client_->NewId())).status(), CL_INVALID_MEM_OBJECT);
}

// A change of hands may copy to or from an image on the way, on drivers of both kinds; a region
// that is not in the image is refused.
TEST_F(ShadowLoopbackTest, ImagesAreCopiedOnTheWay) {
  GiveGpuItsUuid();
  for (const uint64_t device : {kCpu, kGpu}) {
    const uint64_t context = MakeContext(device);
    const uint64_t queue = MakeQueue(context, device);
    const uint64_t mem = client_->NewId();
    ASSERT_EQ(Create(mem, context).status(), CL_SUCCESS);
    pb::ImageDesc desc;
    desc.set_image_type(CL_MEM_OBJECT_IMAGE2D);
    desc.set_width(16);
    desc.set_height(8);
    const uint64_t image = MakeImage(context, desc);
    Fill(queue, mem, "abcd");
    EXPECT_EQ(
        Completed(Acquire(queue, mem, {}, {.image = image, .width = 16, .height = 8})).status(),
        CL_COMPLETE);
    Fill(queue, mem, "wxyz");
    EXPECT_EQ(
        Completed(Release(queue, mem, {}, {.image = image, .width = 16, .height = 8})).status(),
        CL_COMPLETE);
    std::string expected;
    for (int i = 0; i < 16 * 8; ++i) expected += "abcd";
    EXPECT_EQ(Read(queue, mem, 16 * 8 * 4), expected);
    EXPECT_EQ(Read(queue, mem, 16 * 8 * 4 + 4).substr(16 * 8 * 4), "wxyz");
    EXPECT_EQ(
        Completed(Acquire(queue, mem, {}, {.image = image, .width = 17, .height = 8})).status(),
        CL_INVALID_VALUE);
    EXPECT_EQ(Completed(Release(queue, mem, {}, {.image = mem, .width = 1, .height = 1})).status(),
              CL_INVALID_VALUE);
  }
}

// The memory lives until the driver has destroyed its buffer, which commands in flight postpone.
TEST_F(ShadowLoopbackTest, MemoryOutlivesItsRelease) {
  const uint64_t context = MakeContext(kCpu);
  const uint64_t queue = MakeQueue(context, kCpu);
  const uint64_t mem = client_->NewId();
  ASSERT_EQ(Create(mem, context).status(), CL_SUCCESS);
  const uint64_t gate = MakeUserEvent(context);
  pb::Command fill;
  const uint64_t filled = On(fill.mutable_enqueue_fill_buffer()->mutable_on(), queue, {gate});
  fill.mutable_enqueue_fill_buffer()->set_mem_id(mem);
  fill.mutable_enqueue_fill_buffer()->set_pattern("abcd");
  fill.mutable_enqueue_fill_buffer()->set_size(kBytes);
  client_->Send(fill);
  pb::Command release;
  release.mutable_release_object()->set_id(mem);
  client_->Send(release);
  client_->Sync();
  SetUserEvent(gate, CL_COMPLETE);
  EXPECT_EQ(Completed(filled).status(), CL_COMPLETE);
}

}  // namespace
}  // namespace sluice::worker
