// SPDX-License-Identifier: Apache-2.0
// References, and the order of commands: what applications count and what they may rely on.
#include <thread>
#include <vector>

#include "tests/sharing/d3d/again_fixture.h"
#include "tests/sharing/d3d/d3d_fixture.h"

namespace sluice::d3dtest {
namespace {

template <typename E>
class D3dLifetimes : public WithD3d<E> {};
TYPED_TEST_SUITE(D3dLifetimes, Extensions);

// A context has one reference of its device, given back with the context's last.
TYPED_TEST(D3dLifetimes, ContextHoldsItsDevice) {
  D3dApp<TypeParam> app;
  app.KeepDeviceOnly();
  const ULONG before = CountOf(app.device());
  cl_int status = CL_SUCCESS;
  Own<cl_context> context = this->NewContext(this->Properties(app.device()), &status);
  ASSERT_EQ(status, CL_SUCCESS);
  EXPECT_EQ(CountOf(app.device()), before + 1);
  ASSERT_EQ(clRetainContext(context), CL_SUCCESS);
  EXPECT_EQ(CountOf(app.device()), before + 1);
  ASSERT_EQ(clReleaseContext(context), CL_SUCCESS);
  EXPECT_EQ(CountOf(app.device()), before + 1);
  context.Reset();
  EXPECT_EQ(CountOf(app.device()), before);
}

// A refused context leaves no reference behind, and a query for devices neither.
TYPED_TEST(D3dLifetimes, RefusalsHoldNothing) {
  D3dApp<TypeParam> app;
  app.KeepDeviceOnly();
  const ULONG before = CountOf(app.device());
  std::vector<cl_context_properties> twice = this->Properties(app.device());
  twice.insert(twice.end() - 1, {TypeParam::kProperty, twice[3]});
  cl_int status = CL_SUCCESS;
  this->NewContext(twice, &status);
  EXPECT_EQ(status, CL_INVALID_PROPERTY);
  EXPECT_EQ(CountOf(app.device()), before);
  cl_uint count = 0;
  EXPECT_EQ(this->get_devices_(this->platform(), TypeParam::kDeviceSource, app.device(),
                               TypeParam::kAll, 0, nullptr, &count),
            CL_SUCCESS);
  EXPECT_EQ(CountOf(app.device()), before);
}

// A memory object has one reference of its resource, for each subresource one, given back with the
// last of the memory object; refused ones have none.
TYPED_TEST(D3dLifetimes, MemoryHoldsItsResource) {
  const auto texture = this->app().Texture2d(DXGI_FORMAT_R8G8B8A8_UNORM, 8, 8, {2, 1});
  const ULONG before = CountOf(texture.Get());
  Own<cl_mem> first = this->FromTexture(texture.Get(), 0);
  EXPECT_EQ(CountOf(texture.Get()), before + 1);
  Own<cl_mem> second = this->FromTexture(texture.Get(), 1);
  EXPECT_EQ(CountOf(texture.Get()), before + 2);
  this->FromTexture(texture.Get(), 1, TypeParam::kInvalidResource);
  this->FromTexture(texture.Get(), 2, CL_INVALID_VALUE);
  EXPECT_EQ(CountOf(texture.Get()), before + 2);
  ASSERT_EQ(clRetainMemObject(first), CL_SUCCESS);
  ASSERT_EQ(clReleaseMemObject(first), CL_SUCCESS);
  EXPECT_EQ(CountOf(texture.Get()), before + 2);
  first.Reset();
  EXPECT_EQ(CountOf(texture.Get()), before + 1);
  second.Reset();
  EXPECT_EQ(CountOf(texture.Get()), before);
}

// That is so after commands have used it, as soon as they have ended, every time.
TYPED_TEST(D3dLifetimes, NothingIsHeldAfterUse) {
  const Bytes bytes = Pattern(4096, 1);
  const auto buffer = this->app().Buffer(4096, bytes.data());
  const ULONG resource_before = CountOf(buffer.Get());
  const ULONG device_before = CountOf(this->app().device());
  for (int round = 0; round < 20; ++round) {
    Own<cl_mem> memory = this->FromBuffer(buffer.Get());
    ASSERT_EQ(this->Acquire(memory), CL_SUCCESS);
    this->WriteBuffer(memory, bytes);
    ASSERT_EQ(this->Release(memory), CL_SUCCESS);
    ASSERT_EQ(clFinish(this->queue()), CL_SUCCESS);
    EXPECT_EQ(CountOf(buffer.Get()), resource_before + 1) << round;
    memory.Reset();
    EXPECT_EQ(CountOf(buffer.Get()), resource_before) << round;
    EXPECT_EQ(CountOf(this->app().device()), device_before) << round;
  }
}

// A resource whose only reference is OpenCL's lives on.
TYPED_TEST(D3dLifetimes, ResourceOutlivesTheApplications) {
  const Bytes bytes = Pattern(512, 3);
  auto buffer = this->app().Buffer(512, bytes.data());
  Own<cl_mem> memory = this->FromBuffer(buffer.Get());
  buffer.Reset();
  ASSERT_EQ(this->Acquire(memory), CL_SUCCESS);
  EXPECT_TRUE(this->ReadBuffer(memory, 512) == bytes);
  EXPECT_EQ(this->Release(memory), CL_SUCCESS);
}

template <typename E>
class D3dOrder : public WithNext<WithD3d<E>> {
 protected:
  void SetUp() override {
    WithD3d<E>::SetUp();
    ASSERT_FALSE(this->HasFatalFailure());
    buffer_ = this->app().Buffer(this->kBytes, this->before_.data());
    this->memory_ = this->FromObject();
  }
  void Draw(const Bytes& bytes) override {
    this->app().Write(buffer_.Get(), 0, bytes, this->kBytes, 1, 1);
  }
  Bytes Drawn() override { return this->app().Read(buffer_.Get()); }
  cl_int EnqueueRead(cl_command_queue queue, cl_bool blocking, uint8_t* to) override {
    return clEnqueueReadBuffer(queue, this->memory_, blocking, 0, this->kBytes, to, 0, nullptr,
                               nullptr);
  }
  cl_int EnqueueWrite(cl_command_queue queue, const Bytes& from, cl_uint waits = 0,
                      const cl_event* list = nullptr, cl_event* event = nullptr) override {
    return clEnqueueWriteBuffer(queue, this->memory_, CL_FALSE, 0, this->kBytes, from.data(), waits,
                                list, event);
  }
  cl_mem TryFromObject(cl_int* status) override {
    return this->create_buffer_(this->context(), CL_MEM_READ_WRITE, buffer_.Get(), status);
  }
  std::vector<cl_context_properties> OwnProperties() override {
    return this->Properties(this->app().device());
  }
  std::vector<ULONG> Counted() override {
    return {CountOf(buffer_.Get()), CountOf(this->app().device())};
  }
  cl_int made_twice() const override { return E::kInvalidResource; }

  Com<typename E::Buffer> buffer_;
};
TYPED_TEST_SUITE(D3dOrder, Extensions);

// The scenes of order_fixture.h, counts_fixture.h and again_fixture.h, where it says what must
// hold.
TYPED_TEST(D3dOrder, Events) { this->Events(TypeParam::kAcquire, TypeParam::kRelease); }
TYPED_TEST(D3dOrder, NothingIsWaitedForByHand) { this->NothingIsWaitedForByHand(); }
TYPED_TEST(D3dOrder, HoldsBackAnOutOfOrderQueue) { this->HoldsBackAnOutOfOrderQueue(); }
TYPED_TEST(D3dOrder, LaterCommandsWaitForTheAcquire) { this->LaterCommandsWaitForTheAcquire(); }
TYPED_TEST(D3dOrder, OutOfOrderQueue) { this->OutOfOrderQueue(); }
TYPED_TEST(D3dOrder, AcrossQueues) { this->AcrossQueues(); }
TYPED_TEST(D3dOrder, AcquireWaitsForUserEvent) { this->AcquireWaitsForUserEvent(); }
TYPED_TEST(D3dOrder, ReleaseBehindUserEvent) { this->ReleaseBehindUserEvent(); }
TYPED_TEST(D3dOrder, ReleaseBesideUserEvent) { this->ReleaseBesideUserEvent(); }
TYPED_TEST(D3dOrder, FailedWaitList) { this->FailedWaitList(); }
TYPED_TEST(D3dOrder, UserSync) { this->UserSync(); }
TYPED_TEST(D3dOrder, NothingIsHeldWhenWaitedFor) { this->NothingIsHeldWhenWaitedFor(); }
TYPED_TEST(D3dOrder, NothingIsHeldInCallbacks) { this->NothingIsHeldInCallbacks(); }
TYPED_TEST(D3dOrder, NothingIsHeldAfterTheLastReleases) {
  this->NothingIsHeldAfterTheLastReleases();
}
TYPED_TEST(D3dOrder, NothingIsHeldForLong) { this->NothingIsHeldForLong(); }
TYPED_TEST(D3dOrder, NothingIsHeldAfterAFailedRelease) { this->NothingIsHeldAfterAFailedRelease(); }
TYPED_TEST(D3dOrder, FramesWithoutFinish) { this->FramesWithoutFinish(); }
TYPED_TEST(D3dOrder, MadeTwice) { this->MadeTwice(); }
TYPED_TEST(D3dOrder, TurnsOfTwoThreads) { this->TurnsOfTwoThreads(); }
TYPED_TEST(D3dOrder, ThreadsThatSharedEnd) { this->ThreadsThatSharedEnd(); }

// A part of the buffer keeps the memory object that it is a part of; a kernel's argument keeps
// none.
TYPED_TEST(D3dOrder, WhatIsMadeOfItKeepsIt) {
  cl_int status = CL_SUCCESS;
  const cl_buffer_region region = {0, this->kBytes / 2};
  Own<cl_mem> part(clCreateSubBuffer(this->memory_, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION,
                                     &region, &status));
  ASSERT_EQ(status, CL_SUCCESS);
  this->memory_.Reset();
  this->FromObject(this->made_twice());
  part.Reset();
  this->memory_ = this->FromObject();
  Own<cl_kernel> kernel =
      this->BuildKernel("kernel void zero(global uchar* v) { v[get_global_id(0)] = 0; }", "zero");
  conformance::SetArg(kernel, 0, this->memory_);
  ASSERT_EQ(this->Acquire(this->memory_), CL_SUCCESS);
  ASSERT_EQ(conformance::Launch(this->queue(), kernel, this->kBytes), CL_SUCCESS);
  ASSERT_EQ(this->Release(this->memory_), CL_SUCCESS);
  this->memory_.Reset();
  this->memory_ = this->FromObject();
  EXPECT_TRUE(this->Drawn() == Bytes(this->kBytes, 0));
}

// Threads with a buffer each share through one device and one context.
TYPED_TEST(D3dOrder, Threads) {
  constexpr int kThreads = 4;
  std::vector<Com<typename TypeParam::Buffer>> buffers;
  std::vector<Own<cl_mem>> memories;
  for (int i = 0; i < kThreads; ++i) {
    buffers.push_back(this->app().Buffer(this->kBytes, this->before_.data()));
    memories.push_back(this->FromBuffer(buffers.back().Get()));
  }
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([this, i, &memories] {
      Own<cl_command_queue> queue = this->NewQueue();
      const cl_mem list[] = {memories[i]};
      for (int round = 0; round < 5; ++round) {
        const Bytes bytes = Pattern(this->kBytes, 1000 + 10 * i + round);
        EXPECT_EQ(this->acquire_(queue, 1, list, 0, nullptr, nullptr), CL_SUCCESS);
        EXPECT_EQ(clEnqueueWriteBuffer(queue, list[0], CL_TRUE, 0, bytes.size(), bytes.data(), 0,
                                       nullptr, nullptr),
                  CL_SUCCESS);
        EXPECT_EQ(this->release_(queue, 1, list, 0, nullptr, nullptr), CL_SUCCESS);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < kThreads; ++i) {
    EXPECT_TRUE(this->app().Read(buffers[i].Get()) == Pattern(this->kBytes, 1000 + 10 * i + 4));
  }
}

}  // namespace
}  // namespace sluice::d3dtest
