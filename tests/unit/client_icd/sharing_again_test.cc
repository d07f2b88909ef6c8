// SPDX-License-Identifier: Apache-2.0
// A native object that may have one memory object at a time, and gets its next. That is as soon as
// the application has let go of the one before, whatever commands still keep it, but for those that
// wait for something of the application's. The bound of a wait, which only a wait asks for, tells
// that a call waited.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "absl/synchronization/notification.h"
#include "client_icd/base/api.h"
#include "tests/unit/client_icd/sharing_sync_fixture.h"

namespace sluice::client::sharing {
namespace {

// Tells that somebody waits with it.
class NextObject : public FakeNativeObject {
 public:
  NextObject(std::shared_ptr<FakeNative> native, std::shared_ptr<NativeThread> thread,
             uint64_t name, std::function<absl::Duration()> waits)
      : FakeNativeObject(std::move(native), std::move(thread), name), waits_(std::move(waits)) {}
  absl::Duration timeout() const override { return waits_(); }

 private:
  const std::function<absl::Duration()> waits_;
};

class SharingAgainTest : public SharingSyncTest {
 protected:
  static constexpr Api kOneOnly[] = {Api::kD3d10, Api::kD3d11, Api::kDx9Media};

  // The application's objects.
  cl_mem MakeHeld(Api api, uint64_t name) {
    Ref<MemObject> memory;
    EXPECT_EQ(Create(api, &memory, name), CL_SUCCESS);
    return memory.Detach()->handle();
  }
  // The next of that name. `waits` is called if it waits, and says how long it may.
  cl_int MakeNext(Api api, uint64_t name, std::function<absl::Duration()> waits) {
    MemObject::Description about;
    about.flags = CL_MEM_READ_WRITE;
    about.bytes = kFakeBytes;
    Ref<MemObject> memory;
    const cl_int status = CreateShared(
        context_.get(), std::move(about), api,
        std::make_unique<NextObject>(native_, sharing::SharedRegistry::Of(*context_)->thread(),
                                     name, std::move(waits)),
        &memory);
    if (status != CL_SUCCESS) return status;
    return api::clReleaseMemObject(memory.Detach()->handle());
  }
  void ExpectRefusedAtOnce(Api api, uint64_t name) {
    const auto waits = [] {
      ADD_FAILURE() << "waits";
      return absl::ZeroDuration();
    };
    EXPECT_EQ(MakeNext(api, name, waits), RulesOf(api).created_twice);
  }
  void ExpectMade(Api api, uint64_t name) {
    EXPECT_EQ(MakeNext(api, name, [] { return absl::Seconds(60); }), CL_SUCCESS);
  }
  cl_event NewGate() { return api::clCreateUserEvent(context_->handle(), nullptr); }
  void Open(cl_event gate) {
    EXPECT_EQ(api::clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
    EXPECT_EQ(api::clReleaseEvent(gate), CL_SUCCESS);
  }
  MemObject* Of(cl_mem memory) { return MemObject::From(memory); }
};

// Its native thread is in the middle of a job for the old one until somebody waits.
TEST_F(SharingAgainTest, WaitsForTheCommandsOfTheOneReleased) {
  for (const Api api : kOneOnly) {
    SCOPED_TRACE(RulesOf(api).name);
    const uint64_t name = ++next_name_;
    const cl_mem memory = MakeHeld(api, name);
    ASSERT_EQ(Sync(true, api, {Of(memory)}), CL_SUCCESS);
    const auto somebody_waits = std::make_shared<absl::Notification>();
    sharing::SharedRegistry::Of(*context_)->thread()->Post(
        [somebody_waits] { somebody_waits->WaitForNotification(); });
    EXPECT_EQ(Of(memory)->Use(true), CL_SUCCESS);
    ASSERT_EQ(Sync(false, api, {Of(memory)}), CL_SUCCESS);
    ASSERT_EQ(api::clReleaseMemObject(memory), CL_SUCCESS);
    EXPECT_EQ(MakeNext(api, name,
                       [&] {
                         somebody_waits->Notify();
                         return absl::Seconds(60);
                       }),
              CL_SUCCESS);
    if (!somebody_waits->HasBeenNotified()) somebody_waits->Notify();
  }
}

// Frame after frame, with nothing that waits but that; also with a thread that does the same.
TEST_F(SharingAgainTest, Frames) {
  constexpr Api kApi = Api::kD3d11;
  const uint64_t name = ++next_name_;
  const auto frames = [&](int count) {
    for (int done = 0; done < count;) {
      Ref<MemObject> made;
      const cl_int status = Create(kApi, &made, name);
      if (status == RulesOf(kApi).created_twice) continue;  // The other thread has it.
      ASSERT_EQ(status, CL_SUCCESS);
      const cl_mem memory = made.Detach()->handle();
      EXPECT_EQ(Sync(true, kApi, {Of(memory)}), CL_SUCCESS);
      EXPECT_EQ(Of(memory)->Use(true), CL_SUCCESS);
      EXPECT_EQ(Sync(false, kApi, {Of(memory)}), CL_SUCCESS);
      EXPECT_EQ(api::clReleaseMemObject(memory), CL_SUCCESS);
      ++done;
    }
  };
  std::thread other([&] { frames(200); });
  frames(200);
  other.join();
  ExpectMade(kApi, name);
}

// As long as the application has it, or what was made from it, there is nothing to wait for.
TEST_F(SharingAgainTest, RefusedWhileTheApplicationHoldsIt) {
  for (const Api api : kOneOnly) {
    SCOPED_TRACE(RulesOf(api).name);
    const uint64_t name = ++next_name_;
    const cl_mem memory = MakeHeld(api, name);
    ExpectRefusedAtOnce(api, name);
    ASSERT_EQ(api::clRetainMemObject(memory), CL_SUCCESS);
    ASSERT_EQ(api::clReleaseMemObject(memory), CL_SUCCESS);
    ExpectRefusedAtOnce(api, name);
    const cl_buffer_region region = {0, kFakeBytes / 2};
    cl_int status = CL_SUCCESS;
    const cl_mem part = api::clCreateSubBuffer(memory, CL_MEM_READ_WRITE,
                                               CL_BUFFER_CREATE_TYPE_REGION, &region, &status);
    ASSERT_EQ(status, CL_SUCCESS);
    ASSERT_EQ(api::clReleaseMemObject(memory), CL_SUCCESS);
    ExpectRefusedAtOnce(api, name);
    ASSERT_EQ(api::clReleaseMemObject(part), CL_SUCCESS);
    ExpectMade(api, name);
  }
}

// An event that only the application can set is not waited for, once it is set is; another user
// event that is open beside it is nothing to it.
TEST_F(SharingAgainTest, BehindAUserEvent) {
  constexpr Api kApi = Api::kD3d10;
  const uint64_t name = ++next_name_;
  const cl_event beside = NewGate();
  for (const bool maps : {false, true}) {
    SCOPED_TRACE(maps ? "a map" : "an acquire");
    const cl_event gate = NewGate();
    const cl_mem memory = MakeHeld(kApi, name);
    if (maps) {
      ASSERT_EQ(Sync(true, kApi, {Of(memory)}), CL_SUCCESS);
      cl_int status = CL_SUCCESS;
      api::clEnqueueMapBuffer(queue_->handle(), memory, CL_FALSE, CL_MAP_READ, 0, kFakeBytes, 1,
                              &gate, nullptr, &status);
      ASSERT_EQ(status, CL_SUCCESS);
    } else {
      ASSERT_EQ(Sync(true, kApi, {Of(memory)}, nullptr, {gate}), CL_SUCCESS);
      ASSERT_EQ(Sync(false, kApi, {Of(memory)}), CL_SUCCESS);
    }
    ASSERT_EQ(api::clReleaseMemObject(memory), CL_SUCCESS);
    ExpectRefusedAtOnce(kApi, name);
    Open(gate);
    ExpectMade(kApi, name);
  }
  Open(beside);
}

// The wait ends though the commands do not, and then it is refused.
TEST_F(SharingAgainTest, TheWaitHasABound) {
  constexpr Api kApi = Api::kDx9Media;
  const uint64_t name = ++next_name_;
  const auto go_on = std::make_shared<absl::Notification>();
  const cl_mem memory = MakeHeld(kApi, name);
  sharing::SharedRegistry::Of(*context_)->thread()->Post([go_on] { go_on->WaitForNotification(); });
  ASSERT_EQ(Sync(true, kApi, {Of(memory)}), CL_SUCCESS);
  ASSERT_EQ(api::clReleaseMemObject(memory), CL_SUCCESS);
  EXPECT_EQ(MakeNext(kApi, name, [] { return absl::Milliseconds(1); }),
            RulesOf(kApi).created_twice);
  go_on->Notify();
  ExpectMade(kApi, name);
}

// A kernel's argument keeps no memory object.
TEST_F(SharingAgainTest, KernelArgumentsKeepNone) {
  constexpr Api kApi = Api::kD3d11;
  const uint64_t name = ++next_name_;
  const cl_mem memory = MakeHeld(kApi, name);
  ASSERT_EQ(Sync(true, kApi, {Of(memory)}), CL_SUCCESS);
  ASSERT_EQ(Sync(false, kApi, {Of(memory)}), CL_SUCCESS);
  const std::shared_ptr<UseGate> as_an_argument = Of(memory)->use_gate();
  ASSERT_EQ(api::clReleaseMemObject(memory), CL_SUCCESS);
  ExpectMade(kApi, name);
}

}  // namespace
}  // namespace sluice::client::sharing
