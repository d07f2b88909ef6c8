// SPDX-License-Identifier: Apache-2.0
// Native objects that tests of the sharing core make up, and the state that those tests start from:
// a context for every API. Owner: each test has its own. Thread: the test's, and the core's.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "tests/unit/client_icd/sharing_fixture.h"

namespace sluice::client::sharing {

constexpr size_t kFakeBytes = 64;

// The questions to the native side of all objects of a test, and its answers.
struct FakeNative {
  std::mutex mu;
  // One letter per call: Fetch, Store, ReleaseUnchanged; before is <, after is >; a copy to a shadow is t,
  // from a shadow f, with a semaphore 2 and 4.
  std::string log;
  std::string contents = std::string(kFakeBytes, 'n');
  cl_int fetch_status = CL_SUCCESS;
  cl_int copy_status = CL_SUCCESS;  // Of copies to and from shadows.
  bool can_shadow = false;
  bool can_signal = false;
  absl::Status semaphores;

  void Note(char letter) {
    const std::lock_guard<std::mutex> lock(mu);
    log += letter;
  }
  std::string Log() {
    const std::lock_guard<std::mutex> lock(mu);
    return log;
  }
};

class FakeNativeObject : public NativeObject {
 public:
  FakeNativeObject(std::shared_ptr<FakeNative> native, std::shared_ptr<NativeThread> thread,
                   uint64_t name)
      : native_(std::move(native)), thread_(std::move(thread)), name_(name) {}
  NativeKey key() const override { return {name_, 0, 0}; }
  NativeThread& thread() override { return *thread_; }
  cl_int Fetch(uint8_t* packed, absl::Time) override {
    native_->Note('F');
    if (native_->fetch_status == CL_SUCCESS)
      native_->contents.copy(reinterpret_cast<char*>(packed), kFakeBytes);
    return native_->fetch_status;
  }
  cl_int Store(const uint8_t* packed, absl::Time) override {
    native_->Note('S');
    native_->contents.assign(reinterpret_cast<const char*>(packed), kFakeBytes);
    return CL_SUCCESS;
  }
  cl_int ReleaseUnchanged(absl::Time) override {
    native_->Note('L');
    return CL_SUCCESS;
  }
  bool CanShadow() const override { return native_->can_shadow; }
  absl::Status AttachShadow(ShadowMemory memory) override {
    EXPECT_TRUE(memory.fd.valid());
    return absl::OkStatus();
  }
  bool CanSignal() const override { return native_->can_signal; }
  absl::Status AttachSemaphores(ShadowSemaphores semaphores, std::function<void()> stuck) override {
    EXPECT_TRUE(semaphores.to_opencl.valid() && semaphores.from_opencl.valid());
    stuck_ = std::move(stuck);
    return native_->semaphores;
  }
  cl_int CopyToShadow(ShadowSync sync, absl::Time) override {
    native_->Note(sync == ShadowSync::kSemaphore ? '2' : 't');
    return native_->copy_status;
  }
  cl_int CopyFromShadow(ShadowSync sync, absl::Time) override {
    native_->Note(sync == ShadowSync::kSemaphore ? '4' : 'f');
    return native_->copy_status;
  }
  void GetStuck() { stuck_(); }

 private:
  std::function<void()> stuck_;
  const std::shared_ptr<FakeNative> native_;  // Jobs may outlive a test.
  const std::shared_ptr<NativeThread> thread_;
  const uint64_t name_;
};

class SharingSyncTest : public SharingTest {
 protected:
  static constexpr Api kApis[] = {Api::kGl,    Api::kEgl,      Api::kGralloc, Api::kD3d10,
                                  Api::kD3d11, Api::kDx9Media, Api::kSluice};

  void SetUp() override {
    SharingTest::SetUp();
    for (const Api api : kApis) context_->AddInterop(api, std::make_shared<int>(0));
  }
  void TearDown() override {
    ::unsetenv("SLUICE_SHARING");
    SharingTest::TearDown();
  }
  cl_int Create(Api api, Ref<MemObject>* out, uint64_t name = 0) {
    MemObject::Description about;
    about.flags = CL_MEM_READ_WRITE;
    about.bytes = kFakeBytes;
    return CreateShared(context_.get(), std::move(about), api,
                        std::make_unique<FakeNativeObject>(
                            native_, sharing::SharedRegistry::Of(*context_)->thread(),
                            name != 0 ? name : ++next_name_),
                        out);
  }
  Ref<MemObject> Make(Api api) {
    Ref<MemObject> memory;
    EXPECT_EQ(Create(api, &memory), CL_SUCCESS);
    return memory;
  }
  // An acquire and a release of an object that a command has written, to their ends.
  cl_int Round(const Ref<MemObject>& memory, bool written) {
    cl_event acquired = nullptr, released = nullptr;
    EXPECT_EQ(Sync(true, Api::kGl, {memory.get()}, &acquired), CL_SUCCESS);
    const cl_int status = End(acquired);
    EXPECT_EQ(memory->Use(written), CL_SUCCESS);
    EXPECT_EQ(Sync(false, Api::kGl, {memory.get()}, &released), CL_SUCCESS);
    const cl_int end = End(released);
    return status < 0 ? status : end;
  }
  // An object of OpenGL's that goes by shadow.
  Ref<MemObject> MakeShadowed(bool worker_has_semaphores) {
    // Buffers ask for semaphores only if they must.
    ::setenv("SLUICE_SHARING", "shadow,semaphores", 1);
    worker_->MakeShadows(worker_has_semaphores);
    native_->can_shadow = true;
    Ref<MemObject> memory = Make(Api::kGl);
    EXPECT_EQ(SharedOf(*memory)->way(), Way::kShadow);
    return memory;
  }

  const std::shared_ptr<FakeNative> native_ = std::make_shared<FakeNative>();
  static inline uint64_t next_name_ = 100;  // Objects may outlive a test by a moment.
};

}  // namespace sluice::client::sharing
