// SPDX-License-Identifier: Apache-2.0
// Shared by the tests of shadow buffers: the commands of proto/commands/sharing/shadow.proto. Skips
// where there is no Vulkan on the CPU.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "daemon/helpers/external_memory.h"
#include "tests/loopback/harness.h"

namespace sluice::worker {

inline constexpr uint64_t kBytes = 100'000;

class ShadowLoopbackTest : public LoopbackTest {
 protected:
  void SetUp() override {
    LoopbackTest::SetUp();
    auto opened = os::ExternalMemoryDevice::Open(std::nullopt);
    if (!opened.ok()) GTEST_SKIP() << opened.status();
    vulkan_ = *std::move(opened);
  }
  // The driver's GPU is the device that Vulkan has.
  void GiveGpuItsUuid() { fake_->set_gpu_uuid(vulkan_->device_uuid()); }

  // The work of a change of hands beside it.
  struct Also {
    bool semaphore = false;
    uint64_t image = 0;
    uint64_t width = 0, height = 0;
  };

  pb::Answer Create(uint64_t mem, uint64_t context, uint64_t size = kBytes,
                    bool semaphores = false) {
    pb::Command command;
    pb::CreateShadowBuffer& body = *command.mutable_create_shadow_buffer();
    body.set_mem_id(mem);
    body.set_context_id(context);
    body.set_flags(CL_MEM_READ_WRITE);
    body.set_size(size);
    body.set_semaphores(semaphores);
    return client_->Call(command);
  }
  uint64_t Acquire(uint64_t queue, uint64_t mem, const std::vector<uint64_t>& waits = {},
                   const Also& also = {false, 0, 0, 0}) {
    pb::Command command;
    command.mutable_enqueue_acquire_shadow()->set_wait_semaphore(also.semaphore);
    return ChangeHands(command, command.mutable_enqueue_acquire_shadow(), queue, mem, waits, also);
  }
  uint64_t Release(uint64_t queue, uint64_t mem, const std::vector<uint64_t>& waits = {},
                   const Also& also = {false, 0, 0, 0}) {
    pb::Command command;
    command.mutable_enqueue_release_shadow()->set_signal_semaphore(also.semaphore);
    return ChangeHands(command, command.mutable_enqueue_release_shadow(), queue, mem, waits, also);
  }
  void Fill(uint64_t queue, uint64_t mem, const std::string& pattern) {
    pb::Command command;
    const uint64_t event = On(command.mutable_enqueue_fill_buffer()->mutable_on(), queue);
    command.mutable_enqueue_fill_buffer()->set_mem_id(mem);
    command.mutable_enqueue_fill_buffer()->set_pattern(pattern);
    command.mutable_enqueue_fill_buffer()->set_size(kBytes);
    client_->Send(command);
    EXPECT_EQ(Completed(event).status(), CL_COMPLETE);
  }
  std::string Read(uint64_t queue, uint64_t mem, uint64_t size) {
    pb::Command command;
    pb::EnqueueReadBuffer& body = *command.mutable_enqueue_read_buffer();
    const uint64_t event = On(body.mutable_on(), queue);
    body.set_mem_id(mem);
    body.set_size(size);
    client_->Send(command);
    std::string bytes;
    EXPECT_EQ(client_->WaitForCompletion(event, &bytes).status(), CL_COMPLETE);
    return bytes;
  }

  std::shared_ptr<os::ExternalMemoryDevice> vulkan_;

 private:
  template <typename Body>
  uint64_t ChangeHands(pb::Command& command, Body* body, uint64_t queue, uint64_t mem,
                       const std::vector<uint64_t>& waits, const Also& also) {
    const uint64_t event = On(body->mutable_on(), queue, waits);
    body->set_mem_id(mem);
    body->set_image_id(also.image);
    if (also.image != 0) {
      body->mutable_region()->set_x(also.width);
      body->mutable_region()->set_y(also.height);
      body->mutable_region()->set_z(1);
    }
    client_->Send(command);
    return event;
  }
};

}  // namespace sluice::worker
