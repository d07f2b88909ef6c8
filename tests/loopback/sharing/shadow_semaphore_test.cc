// SPDX-License-Identifier: Apache-2.0
// The semaphores of shadow buffers through the worker. The fake driver's are eventfds, and so is
// what stands here for Vulkan's, which the drivers of test machines do not export.
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "daemon/worker/memory/shadow_semaphores.h"
#include "tests/loopback/sharing/shadow_fixture.h"

namespace sluice::worker {
namespace {

using Exports = std::function<absl::StatusOr<os::UniqueFd>()>;

absl::StatusOr<Exports> MakeEventfd(const os::ExternalMemoryDevice&) {
  const auto fd = std::make_shared<os::UniqueFd>(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  return Exports([fd]() -> absl::StatusOr<os::UniqueFd> { return os::UniqueFd(dup(fd->get())); });
}

bool IsSignalled(const os::UniqueFd& fd) {
  struct pollfd one = {fd.get(), POLLIN, 0};
  return poll(&one, 1, 0) == 1;
}

class ShadowSemaphoreLoopbackTest : public ShadowLoopbackTest {
 protected:
  void SetUp() override {
    ShadowLoopbackTest::SetUp();
    if (IsSkipped()) return;
    GiveGpuItsUuid();
    fake_->set_gpu_semaphores(true);
    SetSemaphoreMakerForTesting(&MakeEventfd);
  }
  void TearDown() override {
    SetSemaphoreMakerForTesting(nullptr);
    EXPECT_EQ(fake_->misused_semaphores(), 0);
    ShadowLoopbackTest::TearDown();
  }

  // A shadow with semaphores, with a queue.
  void MakeShadow(uint64_t* queue, uint64_t* mem) {
    context_ = MakeContext(kGpu);
    *queue = MakeQueue(context_, kGpu);
    *mem = client_->NewId();
    const pb::Answer answer = Create(*mem, context_, kBytes, /*semaphores=*/true);
    ASSERT_EQ(answer.status(), CL_SUCCESS) << answer.shadow().reason();
    ASSERT_TRUE(answer.shadow().semaphores()) << answer.shadow().no_semaphores();
    std::vector<os::UniqueFd> fds;
    client_->TakeHandles(3, &fds);
    ASSERT_EQ(fds.size(), 3u);
    ours_ = std::move(fds[1]);
    theirs_ = std::move(fds[2]);
  }
  void Signal() {
    const uint64_t one = 1;
    ASSERT_FALSE(IsSignalled(ours_)) << "a second signal";
    ASSERT_EQ(write(ours_.get(), &one, sizeof(one)), ssize_t{sizeof(one)});
  }
  // The device's signal, which has been given to it but may not be there yet.
  void WaitForSignal() {
    client_->WaitUntil([this] { return IsSignalled(theirs_); });
    uint64_t payload = 0;
    ASSERT_EQ(read(theirs_.get(), &payload, sizeof(payload)), ssize_t{sizeof(payload)});
    EXPECT_EQ(payload, 1u);
  }

  uint64_t context_ = 0;
  os::UniqueFd ours_;    // The client signals this one.
  os::UniqueFd theirs_;  // The client waits for this one.
};

// The device waits for the client's signal, and the image is made of what is in the shadow then.
TEST_F(ShadowSemaphoreLoopbackTest, AcquireWaitsForTheClientsSignal) {
  uint64_t queue = 0, mem = 0;
  ASSERT_NO_FATAL_FAILURE(MakeShadow(&queue, &mem));
  pb::ImageDesc desc;
  desc.set_image_type(CL_MEM_OBJECT_IMAGE2D);
  desc.set_width(4);
  desc.set_height(4);
  const uint64_t image = MakeImage(context_, desc);
  Fill(queue, mem, "abcd");
  for (int round = 0; round < 3; ++round) {
    const uint64_t acquired = Acquire(queue, mem, {}, {true, image, 4, 4});
    client_->Sync();
    for (const ReceivedReply& received : client_->TakeAll())
      EXPECT_NE(received.reply.completion().event_id(), acquired);
    Signal();
    EXPECT_EQ(Completed(acquired).status(), CL_COMPLETE);
    EXPECT_FALSE(IsSignalled(ours_)) << "waited for";
    Fill(queue, mem, "wxyz");
    EXPECT_EQ(Completed(Release(queue, mem, {}, {true, image, 4, 4})).status(), CL_COMPLETE);
    WaitForSignal();
    EXPECT_EQ(Read(queue, mem, 4), "abcd") << "copied from the image";
  }
}

// Operators see how many shadows have used their semaphores, for as long as they live.
TEST_F(ShadowSemaphoreLoopbackTest, UseIsCounted) {
  uint64_t queue = 0, mem = 0;
  ASSERT_NO_FATAL_FAILURE(MakeShadow(&queue, &mem));
  EXPECT_EQ(Completed(Acquire(queue, mem)).status(), CL_COMPLETE);
  EXPECT_EQ(Completed(Release(queue, mem)).status(), CL_COMPLETE);
  EXPECT_EQ(client_->session().counts.semaphored, 0u);
  for (int round = 0; round < 2; ++round) {
    Signal();
    EXPECT_EQ(Completed(Acquire(queue, mem, {}, {true, 0, 0, 0})).status(), CL_COMPLETE);
    EXPECT_EQ(Completed(Release(queue, mem)).status(), CL_COMPLETE);
    EXPECT_EQ(client_->session().counts.semaphored, 1u);
  }
  EXPECT_EQ(client_->session().counts.mutexed, 0u);
  pb::Command release;
  release.mutable_release_object()->set_id(mem);
  client_->Send(release);
  client_->WaitUntil([this] { return client_->session().counts.semaphored == 0; });
}

// A release has ended for the host when the device has been told; the signal is behind the copy,
// which the device may not have made yet.
TEST_F(ShadowSemaphoreLoopbackTest, ReleaseEndsBeforeItsSignal) {
  uint64_t queue = 0, mem = 0;
  ASSERT_NO_FATAL_FAILURE(MakeShadow(&queue, &mem));
  Signal();
  EXPECT_EQ(Completed(Acquire(queue, mem, {}, {true, 0, 0, 0})).status(), CL_COMPLETE);
  const uint64_t gate = MakeUserEvent(context_);
  const uint64_t released = Release(queue, mem, {gate}, {true, 0, 0, 0});
  client_->Sync();
  EXPECT_FALSE(IsSignalled(theirs_)) << "before what it waits for";
  SetUserEvent(gate, CL_COMPLETE);
  EXPECT_EQ(Completed(released).status(), CL_COMPLETE);
  WaitForSignal();
}

// A failure before the device has been told leaves the semaphores as they are. The client, which
// cannot know, uses them no more, and goes on without.
TEST_F(ShadowSemaphoreLoopbackTest, FailuresLeaveSemaphoresAlone) {
  uint64_t queue = 0, mem = 0;
  ASSERT_NO_FATAL_FAILURE(MakeShadow(&queue, &mem));
  const uint64_t failing = MakeUserEvent(context_);
  const uint64_t failed = Acquire(queue, mem, {failing}, {true, 0, 0, 0});
  const uint64_t failed_too = Release(queue, mem, {failing}, {true, 0, 0, 0});
  Signal();
  SetUserEvent(failing, -5);
  EXPECT_LT(Completed(failed).status(), 0);
  EXPECT_LT(Completed(failed_too).status(), 0);
  EXPECT_TRUE(IsSignalled(ours_));
  EXPECT_FALSE(IsSignalled(theirs_));
  const uint64_t other = MakeQueue(context_, kGpu);
  fake_->FailNext("clEnqueueWaitSemaphoresKHR", CL_INVALID_OPERATION);
  EXPECT_LT(Completed(Acquire(other, mem, {}, {true, 0, 0, 0})).status(), 0);
  fake_->FailNext("clEnqueueSignalSemaphoresKHR", CL_OUT_OF_RESOURCES);
  const uint64_t third = MakeQueue(context_, kGpu);
  EXPECT_LT(Completed(Release(third, mem, {}, {true, 0, 0, 0})).status(), 0);
  EXPECT_FALSE(IsSignalled(theirs_));
  const uint64_t fourth = MakeQueue(context_, kGpu);
  EXPECT_EQ(Completed(Acquire(fourth, mem)).status(), CL_COMPLETE);
  EXPECT_EQ(Completed(Release(fourth, mem)).status(), CL_COMPLETE);
}

// A wait whose command fails later is given to the device all the same: nobody knows how long the
// client's end of the semaphore lives.
TEST_F(ShadowSemaphoreLoopbackTest, WaitOfAFailedCommandIsFlushed) {
  uint64_t queue = 0, mem = 0;
  ASSERT_NO_FATAL_FAILURE(MakeShadow(&queue, &mem));
  pb::ImageDesc desc;
  desc.set_image_type(CL_MEM_OBJECT_IMAGE2D);
  desc.set_width(4);
  desc.set_height(4);
  const uint64_t image = MakeImage(context_, desc);
  Signal();
  fake_->ClearCalls();
  fake_->FailNext("clEnqueueCopyBufferToImage", CL_INVALID_VALUE);
  EXPECT_LT(Completed(Acquire(queue, mem, {}, {true, image, 4, 4})).status(), 0);
  const uint64_t own_queue = fake_->Last("clEnqueueCopyBufferToImage").values[0];
  bool flushed = false;
  for (const fake::RecordedCall& call : fake_->Calls("clFlush"))
    flushed = flushed || call.values[0] == own_queue;
  EXPECT_TRUE(flushed);
  client_->WaitUntil([this] { return !IsSignalled(ours_); });
}

// A client that never signals holds up its own work, and its session still answers.
TEST_F(ShadowSemaphoreLoopbackTest, NeverSignalledHoldsUpOnlyItsQueue) {
  uint64_t queue = 0, mem = 0;
  ASSERT_NO_FATAL_FAILURE(MakeShadow(&queue, &mem));
  const uint64_t held = Acquire(queue, mem, {}, {true, 0, 0, 0});
  client_->Sync();
  EXPECT_EQ(Create(client_->NewId(), client_->NewId()).status(), CL_INVALID_CONTEXT);
  Signal();  // So that the fake driver's thread need not be waited for.
  EXPECT_EQ(Completed(held).status(), CL_COMPLETE);
}

// Semaphores that cannot be are none, with a reason, and the shadow is there; what was not given
// cannot be used.
TEST_F(ShadowSemaphoreLoopbackTest, WithoutSemaphoresTheShadowIsThere) {
  const uint64_t context = MakeContext(kGpu);
  const uint64_t queue = MakeQueue(context, kGpu);
  const auto create = [&](bool wanted, uint64_t* mem) {
    *mem = client_->NewId();
    const pb::Answer answer = Create(*mem, context, kBytes, wanted);
    EXPECT_EQ(answer.status(), CL_SUCCESS) << answer.shadow().reason();
    EXPECT_FALSE(answer.shadow().semaphores());
    EXPECT_TRUE(answer.shadow().copies_images());
    os::UniqueFd memory;
    client_->TakeHandle(&memory);
    return answer.shadow().no_semaphores();
  };
  uint64_t mem = 0;
  EXPECT_EQ(create(false, &mem), "");
  EXPECT_EQ(Completed(Acquire(queue, mem, {}, {true, 0, 0, 0})).status(), CL_INVALID_OPERATION);
  EXPECT_EQ(Completed(Release(queue, mem, {}, {true, 0, 0, 0})).status(), CL_INVALID_OPERATION);
  const int alive = fake_->live_objects();
  fake_->FailNext("clCreateSemaphoreWithPropertiesKHR", CL_INVALID_PROPERTY, /*skip=*/1);
  EXPECT_EQ(create(true, &mem), "the driver does not import the semaphore: -64");
  EXPECT_EQ(fake_->live_objects(), alive + 1) << "the buffer alone";
  SetSemaphoreMakerForTesting(nullptr);  // Vulkan's own: the CPU's exports none.
  if (!vulkan_->exports_semaphores()) {
    EXPECT_NE(create(true, &mem).find("exports no semaphore"), std::string::npos);
  }
  fake_->set_gpu_semaphores(false);
  EXPECT_EQ(create(true, &mem), "the driver has no cl_khr_external_semaphore_opaque_fd");
  const uint64_t cpu = MakeContext(kCpu);
  const pb::Answer answer = Create(client_->NewId(), cpu, kBytes, true);
  EXPECT_EQ(answer.status(), CL_SUCCESS);
  EXPECT_EQ(answer.shadow().no_semaphores(), "the device works in the host's memory");
}

// The semaphores go with their buffer.
TEST_F(ShadowSemaphoreLoopbackTest, ReleasedWithTheShadow) {
  uint64_t queue = 0, mem = 0;
  ASSERT_NO_FATAL_FAILURE(MakeShadow(&queue, &mem));
  const int alive = fake_->live_objects();
  pb::Command release;
  release.mutable_release_object()->set_id(mem);
  client_->Send(release);
  client_->WaitUntil([&] { return fake_->live_objects() == alive - 3; });
}

}  // namespace
}  // namespace sluice::worker
