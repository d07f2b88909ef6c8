// SPDX-License-Identifier: Apache-2.0
// Applications that are there while the service is stopped and started again: the scenes are what
// tests/windows/restart.py starts, and tells by lines on stdin how far it is.
#include <cstdio>

#include "tests/conformance/harness/child_process.h"
#include "tests/sharing/d3d/d3d_fixture.h"
#include "tests/sharing/d3d/dx9_fixture.h"

namespace sluice::d3dtest {
namespace {

constexpr Size kSize = {16, 8};
constexpr size_t kBytes = 16 * 8 * 4;

// The scene's needs of its API.
template <typename E>
class RestartedD3d : public WithD3d<E> {
 protected:
  using Object = Com<typename E::Texture2d>;
  Object NewObject() {
    return this->app().Texture2d(DXGI_FORMAT_R8G8B8A8_UNORM, kSize.width, kSize.height);
  }
  Own<cl_mem> FromObject(const Object& object) { return this->FromTexture(object.Get()); }
  void Draw(const Object& object, const Bytes& bytes) {
    this->app().Write(object.Get(), 0, bytes, kSize.width, kSize.height, 4);
  }
  Bytes Drawn(const Object& object) { return this->app().Read(object.Get(), 0, kSize, 4); }
  std::vector<cl_context_properties> OwnProperties() {
    return this->Properties(this->app().device());
  }
};

template <cl_dx9_media_adapter_type_khr kType>
class RestartedDx9 : public WithDx9 {
 protected:
  using Object = Com<IDirect3DSurface9>;
  cl_dx9_media_adapter_type_khr type() const override { return kType; }
  Object NewObject() { return app().Offscreen(D3DFMT_A8R8G8B8, kSize.width, kSize.height); }
  Own<cl_mem> FromObject(const Object& object) { return From(object.Get()); }
  void Draw(const Object& object, const Bytes& bytes) {
    app().Write(object.Get(), bytes, kSize.width * 4, kSize.height);
  }
  Bytes Drawn(const Object& object) {
    return app().Read(object.Get(), kSize.width * 4, kSize.height);
  }
  std::vector<cl_context_properties> OwnProperties() { return Properties(app().device()); }
};

// Base is one of these.
template <typename Base>
class Restarted : public Base {
 public:
  void TestBody() override {
    this->SetUp();
    if (this->HasFatalFailure()) return;
    for (auto& object : objects_) {
      object = this->NewObject();
      ASSERT_NE(object, nullptr);
      this->Draw(object, before_);
    }
    const ULONG references = ReferencesOf(objects_[kAcquired]);
    UseUntilTheEnd();
    if (this->HasFatalFailure()) return;
    ExpectLost();
    LetGo();
    for (auto& object : objects_) {
      EXPECT_EQ(ReferencesOf(object), references);
      EXPECT_TRUE(this->Drawn(object) == before_) << "nothing was released";
    }
    cl_int status = CL_SUCCESS;
    this->NewContext(this->OwnProperties(), &status);
    EXPECT_NE(status, CL_SUCCESS) << "without a service";
    Say("released");
    this->MakeContext(this->OwnProperties());
    if (this->HasFatalFailure()) return;
    for (auto& object : objects_) ShareAgain(object);
  }

 private:
  enum { kAcquired, kBeingAcquired, kBeingReleased, kCount };

  template <typename T>
  static ULONG ReferencesOf(const T& object) {
    return References(object.Get());
  }
  // Says how far it is, and waits until it is to go on.
  static void Say(const char* what) {
    std::puts(what);
    std::fflush(stdout);
    char line[16];
    EXPECT_NE(std::fgets(line, sizeof(line), stdin), nullptr);
  }

  void LetGo() {
    memories_.clear();
    gate_.Reset();
    acquiring_.Reset();
    releasing_.Reset();
    this->LetContextGo();
  }

  // One object that OpenCL has and has written to, and two whose acquire and release are behind an
  // event that nobody sets.
  void UseUntilTheEnd() {
    cl_int status = CL_SUCCESS;
    for (const auto& object : objects_) memories_.push_back(this->FromObject(object));
    for (const int one : {kAcquired, kBeingReleased}) {
      ASSERT_EQ(this->Acquire(memories_[one]), CL_SUCCESS);
      this->WriteImage(memories_[one], kSize, after_);
    }
    gate_ = Own<cl_event>(clCreateUserEvent(this->context(), &status));
    ASSERT_EQ(status, CL_SUCCESS);
    const cl_mem second[] = {memories_[kBeingAcquired]};
    ASSERT_EQ(this->acquire_(this->queue(), 1, second, 1, gate_.AsList(), acquiring_.Out()),
              CL_SUCCESS);
    const cl_mem third[] = {memories_[kBeingReleased]};
    ASSERT_EQ(this->release_(this->queue(), 1, third, 1, gate_.AsList(), releasing_.Out()),
              CL_SUCCESS);
    ASSERT_EQ(clFlush(this->queue()), CL_SUCCESS);
    Say("acquired");
  }

  // Work that was under way has failed, and whatever is asked is refused with the code of a device
  // that is not available.
  void ExpectLost() {
    const cl_mem first[] = {memories_[kAcquired]};
    EXPECT_EQ(this->Release(memories_[kAcquired]), CL_DEVICE_NOT_AVAILABLE);
    EXPECT_EQ(this->Acquire(memories_[kBeingReleased]), CL_DEVICE_NOT_AVAILABLE);
    EXPECT_EQ(this->release_(this->queue(), 1, first, 0, nullptr, nullptr),
              CL_DEVICE_NOT_AVAILABLE);
    EXPECT_LT(clWaitForEvents(1, acquiring_.AsList()), 0);
    EXPECT_LT(conformance::StatusOf(acquiring_), 0);
    EXPECT_LT(clWaitForEvents(1, releasing_.AsList()), 0);
    EXPECT_LT(conformance::StatusOf(releasing_), 0);
    const size_t origin[3] = {};
    const size_t region[3] = {kSize.width, kSize.height, 1};
    Bytes bytes(kBytes);
    EXPECT_EQ(clEnqueueReadImage(this->queue(), memories_[kAcquired], CL_TRUE, origin, region, 0, 0,
                                 bytes.data(), 0, nullptr, nullptr),
              CL_DEVICE_NOT_AVAILABLE);
    EXPECT_EQ(clFinish(this->queue()), CL_DEVICE_NOT_AVAILABLE);
  }

  template <typename Object>
  void ShareAgain(const Object& object) {
    Own<cl_mem> memory = this->FromObject(object);
    ASSERT_NE(memory.get(), nullptr);
    ASSERT_EQ(this->Acquire(memory), CL_SUCCESS);
    EXPECT_TRUE(this->ReadImage(memory, kSize) == before_);
    this->WriteImage(memory, kSize, after_);
    ASSERT_EQ(this->Release(memory), CL_SUCCESS);
    EXPECT_TRUE(this->Drawn(object) == after_);
  }

  const Bytes before_ = Pattern(kBytes, 1);
  const Bytes after_ = Pattern(kBytes, 2);
  typename Base::Object objects_[kCount];
  std::vector<Own<cl_mem>> memories_;
  Own<cl_event> gate_;
  Own<cl_event> acquiring_;
  Own<cl_event> releasing_;
};

template <typename Base>
int RunThroughRestart() {
  Restarted<Base>().TestBody();
  const bool good = !testing::UnitTest::GetInstance()->Failed();
  std::puts(good ? "shared again" : "failed");
  return good ? 0 : 10;
}

CHILD_SCENE(RestartD3D9) { return RunThroughRestart<RestartedDx9<CL_ADAPTER_D3D9_KHR>>(); }
CHILD_SCENE(RestartD3D9Ex) { return RunThroughRestart<RestartedDx9<CL_ADAPTER_D3D9EX_KHR>>(); }
CHILD_SCENE(RestartD3D10) { return RunThroughRestart<RestartedD3d<Khr10>>(); }
CHILD_SCENE(RestartD3D11) { return RunThroughRestart<RestartedD3d<Khr11>>(); }
CHILD_SCENE(RestartD3D11NV) { return RunThroughRestart<RestartedD3d<Nv11>>(); }

}  // namespace
}  // namespace sluice::d3dtest
