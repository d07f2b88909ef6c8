// SPDX-License-Identifier: Apache-2.0
// Device shadows in the sharing core: semaphores and who waits for them, and what lies beside them.
#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "client_icd/base/api.h"
#include "tests/unit/client_icd/sharing_sync_fixture.h"

namespace sluice::client::sharing {
namespace {

class SharingShadowTest : public SharingSyncTest {};

// Semaphores are used round after round where both sides have them, for a release only if there is
// something to copy.
TEST_F(SharingShadowTest, SemaphoresOrderTheCopies) {
  native_->can_signal = true;
  const Ref<MemObject> memory = MakeShadowed(true);
  for (int round = 0; round < 3; ++round) EXPECT_EQ(Round(memory, true), CL_COMPLETE);
  EXPECT_EQ(Round(memory, false), CL_COMPLETE);
  EXPECT_EQ(native_->Log(), "2424242L");
  EXPECT_EQ(worker_->ShadowLog(), "ARARARAr");
}

// Without them on either side, or if the native API does not take them, all waits on the host.
TEST_F(SharingShadowTest, WithoutSemaphoresTheHostWaits) {
  for (const bool worker_has : {false, true}) {
    for (const bool native_has : {false, true}) {
      native_->can_signal = native_has;
      native_->semaphores = absl::UnavailableError("not taken");
      EXPECT_EQ(Round(MakeShadowed(worker_has && native_has), true), CL_COMPLETE);
    }
  }
  EXPECT_EQ(native_->Log(), "tftftftf");
  EXPECT_EQ(worker_->ShadowLog(), "arararar");
}

// A driver whose kernels fail on an image over an imported buffer gets one of its own beside the
// shadow. The native API's bytes are there after an acquire, and a command's bytes are in the
// shadow before the native API copies. Bytes that nobody wrote are not copied back.
TEST_F(SharingShadowTest, WithoutUsableImagesABufferLiesBesideTheShadow) {
  context_ = MakeContext(/*images_of_imports=*/false);
  context_->AddInterop(Api::kGl, std::make_shared<int>(0));
  queue_ = MakeQueue(0);
  const Ref<MemObject> memory = MakeShadowed(false);
  const Ref<MemObject> shadow = SharedOf(*memory)->shadow();
  ASSERT_NE(shadow.get(), nullptr);
  EXPECT_EQ(worker_->Count(pb::Command::kCreateBuffer), 1u);
  worker_->SetMemory(shadow->id(), "from GL");
  cl_event event = nullptr;
  ASSERT_EQ(Sync(true, Api::kGl, {memory.get()}, &event), CL_SUCCESS);
  EXPECT_EQ(End(event), CL_COMPLETE);
  EXPECT_EQ(worker_->Memory(memory->id()), "from GL");
  ASSERT_EQ(memory->Use(true), CL_SUCCESS);
  worker_->SetMemory(memory->id(), "from CL");
  ASSERT_EQ(Sync(false, Api::kGl, {memory.get()}, &event), CL_SUCCESS);
  EXPECT_EQ(End(event), CL_COMPLETE);
  EXPECT_EQ(worker_->Memory(shadow->id()), "from CL");
  EXPECT_EQ(worker_->ShadowLog(), "accr");
  EXPECT_EQ(Round(memory, false), CL_COMPLETE);
  EXPECT_EQ(worker_->ShadowLog(), "accracr");
  EXPECT_EQ(native_->Log(), "tftL");
}

// A buffer's copies are faster without.
TEST_F(SharingShadowTest, BuffersGoWithoutSemaphores) {
  native_->can_signal = true;
  const Ref<MemObject> with = MakeShadowed(true);
  ::unsetenv("SLUICE_SHARING");
  const Ref<MemObject> without = Make(Api::kGl);
  EXPECT_NE(SharedOf(*with)->shadow_abilities().semaphores, nullptr);
  EXPECT_EQ(SharedOf(*without)->shadow_abilities().semaphores, nullptr);
}

// A use of a semaphore that fails, or may have, is its last: nobody knows whether it is signalled.
// The other direction goes on.
TEST_F(SharingShadowTest, FailureIsASemaphoresLastUse) {
  native_->can_signal = true;
  const Ref<MemObject> one = MakeShadowed(true);
  worker_->FailNextAcquire(CL_OUT_OF_RESOURCES);  // Signalled, and not waited for.
  EXPECT_LT(Round(one, true), 0);
  EXPECT_EQ(Round(one, true), CL_COMPLETE);
  // The release behind the failure has taken its turn and not come to its copy.
  EXPECT_EQ(native_->Log(), "2Ltf");
  EXPECT_EQ(worker_->ShadowLog(), "Aar");
  native_->log.clear();
  const Ref<MemObject> other = MakeShadowed(true);
  EXPECT_EQ(Round(other, true), CL_COMPLETE);
  cl_event event = nullptr;
  ASSERT_EQ(Sync(true, Api::kGl, {other.get()}, &event), CL_SUCCESS);
  ASSERT_EQ(End(event), CL_COMPLETE);
  native_->copy_status = CL_OUT_OF_RESOURCES;  // Signalled, and perhaps not waited for.
  ASSERT_EQ(other->Use(true), CL_SUCCESS);
  ASSERT_EQ(Sync(false, Api::kGl, {other.get()}, &event), CL_SUCCESS);
  EXPECT_LT(End(event), 0);
  native_->copy_status = CL_SUCCESS;
  EXPECT_EQ(Round(other, true), CL_COMPLETE);
  EXPECT_EQ(native_->Log(), "24242f");
}

// Nobody signals a second time while it is not known that the first signal was waited for.
TEST_F(SharingShadowTest, NoSecondSignalBeforeTheWait) {
  native_->can_signal = true;
  const Ref<MemObject> memory = MakeShadowed(true);
  Ref<Event> gate;
  ASSERT_EQ(MakeUserEvent(context_.get(), &gate), CL_SUCCESS);
  cl_event events[4] = {};
  ASSERT_EQ(Sync(true, Api::kGl, {memory.get()}, &events[0], {gate->handle()}), CL_SUCCESS);
  ASSERT_EQ(memory->Use(true), CL_SUCCESS);
  ASSERT_EQ(Sync(false, Api::kGl, {memory.get()}, &events[1]), CL_SUCCESS);
  ASSERT_EQ(Sync(true, Api::kGl, {memory.get()}, &events[2]), CL_SUCCESS);
  ASSERT_EQ(memory->Use(true), CL_SUCCESS);
  ASSERT_EQ(Sync(false, Api::kGl, {memory.get()}, &events[3]), CL_SUCCESS);
  ASSERT_TRUE(gate->ClaimUserStatus());
  ASSERT_EQ(EndUserEvent(gate.get(), CL_COMPLETE), CL_SUCCESS);
  for (const cl_event event : events) EXPECT_EQ(End(event), CL_COMPLETE);
  EXPECT_EQ(native_->Log(), "24tf");
  EXPECT_EQ(worker_->ShadowLog(), "ARar");
  EXPECT_EQ(Round(memory, true), CL_COMPLETE);
  EXPECT_EQ(native_->Log(), "24tf24") << "known by now";
}

// A signal that the native API promised and does not give ends the session: nothing waits for ever.
TEST_F(SharingShadowTest, StuckSignalLosesTheSession) {
  native_->can_signal = true;
  const Ref<MemObject> memory = MakeShadowed(true);
  static_cast<FakeNativeObject&>(SharedOf(*memory)->native()).GetStuck();
  EXPECT_TRUE(session_->lost());
  EXPECT_EQ(Sync(true, Api::kGl, {memory.get()}), CL_DEVICE_NOT_AVAILABLE);
}

}  // namespace
}  // namespace sluice::client::sharing
