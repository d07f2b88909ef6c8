// SPDX-License-Identifier: Apache-2.0
// References, and the order of commands: what applications count and what they may rely on.
#include <thread>
#include <vector>

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
class D3dOrder : public WithD3d<E> {
 protected:
  void SetUp() override {
    WithD3d<E>::SetUp();
    buffer_ = this->app().Buffer(kBytes, before_.data());
    memory_ = this->FromBuffer(buffer_.Get());
  }
  cl_command_type TypeOf(cl_event event) {
    cl_command_type type = 0;
    EXPECT_EQ(clGetEventInfo(event, CL_EVENT_COMMAND_TYPE, sizeof(type), &type, nullptr),
              CL_SUCCESS);
    return type;
  }

  static constexpr size_t kBytes = 1024;
  const Bytes before_ = Pattern(kBytes, 1);
  const Bytes after_ = Pattern(kBytes, 2);
  Com<typename E::Buffer> buffer_;
  Own<cl_mem> memory_;
};
TYPED_TEST_SUITE(D3dOrder, Extensions);

// The events say what they are of, and of which queue; a release has ended when it returns.
TYPED_TEST(D3dOrder, Events) {
  Own<cl_event> acquired;
  Own<cl_event> released;
  ASSERT_EQ(this->Acquire(this->memory_, acquired.Out()), CL_SUCCESS);
  ASSERT_EQ(this->Release(this->memory_, released.Out()), CL_SUCCESS);
  EXPECT_EQ(this->TypeOf(acquired), TypeParam::kAcquire);
  EXPECT_EQ(this->TypeOf(released), TypeParam::kRelease);
  cl_command_queue queue = nullptr;
  EXPECT_EQ(clGetEventInfo(released, CL_EVENT_COMMAND_QUEUE, sizeof(queue), &queue, nullptr),
            CL_SUCCESS);
  EXPECT_EQ(queue, this->queue());
  EXPECT_EQ(clWaitForEvents(1, released.AsList()), CL_SUCCESS);
  EXPECT_EQ(conformance::StatusOf(acquired), CL_COMPLETE);
}

// Direct3D writes, without a flush, and the acquire sees it; OpenCL writes, without a finish, and
// Direct3D sees it: many times over.
TYPED_TEST(D3dOrder, NothingIsWaitedForByHand) {
  for (uint32_t round = 0; round < 20; ++round) {
    const Bytes mine = Pattern(this->kBytes, 100 + round);
    this->app().Write(this->buffer_.Get(), 0, mine, this->kBytes, 1, 1);
    ASSERT_EQ(this->Acquire(this->memory_), CL_SUCCESS);
    Bytes seen(this->kBytes);
    ASSERT_EQ(clEnqueueReadBuffer(this->queue(), this->memory_, CL_FALSE, 0, this->kBytes,
                                  seen.data(), 0, nullptr, nullptr),
              CL_SUCCESS);
    const Bytes theirs = Pattern(this->kBytes, 200 + round);
    ASSERT_EQ(clEnqueueWriteBuffer(this->queue(), this->memory_, CL_FALSE, 0, this->kBytes,
                                   theirs.data(), 0, nullptr, nullptr),
              CL_SUCCESS);
    ASSERT_EQ(this->Release(this->memory_), CL_SUCCESS);
    EXPECT_TRUE(this->app().Read(this->buffer_.Get()) == theirs) << round;
    ASSERT_EQ(clFinish(this->queue()), CL_SUCCESS);
    EXPECT_TRUE(seen == mine) << round;
  }
}

// Also in a queue without order an acquire comes before all later commands, and a release after all
// earlier ones (section 9.8.7.6; cl_nv_d3d11_sharing), without a list or a wait.
TYPED_TEST(D3dOrder, HoldsBackAnOutOfOrderQueue) {
  if (!this->HasOutOfOrder()) GTEST_SKIP() << "no out-of-order queues";
  Own<cl_command_queue> queue = this->NewQueue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  const cl_mem list[] = {this->memory_};
  for (uint32_t round = 0; round < 10; ++round) {
    const Bytes mine = Pattern(this->kBytes, 100 + round);
    const Bytes theirs = Pattern(this->kBytes, 200 + round);
    this->app().Write(this->buffer_.Get(), 0, mine, this->kBytes, 1, 1);
    ASSERT_EQ(this->acquire_(queue, 1, list, 0, nullptr, nullptr), CL_SUCCESS);
    Bytes seen(this->kBytes);
    ASSERT_EQ(clEnqueueReadBuffer(queue, this->memory_, CL_TRUE, 0, this->kBytes, seen.data(), 0,
                                  nullptr, nullptr),
              CL_SUCCESS);
    EXPECT_TRUE(seen == mine) << round;
    ASSERT_EQ(clEnqueueWriteBuffer(queue, this->memory_, CL_FALSE, 0, this->kBytes, theirs.data(),
                                   0, nullptr, nullptr),
              CL_SUCCESS);
    ASSERT_EQ(this->release_(queue, 1, list, 0, nullptr, nullptr), CL_SUCCESS);
    EXPECT_TRUE(this->app().Read(this->buffer_.Get()) == theirs) << round;
  }
}

// Events order the rest there.
TYPED_TEST(D3dOrder, OutOfOrderQueue) {
  if (!this->HasOutOfOrder()) GTEST_SKIP() << "no out-of-order queues";
  Own<cl_command_queue> queue = this->NewQueue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  const cl_mem list[] = {this->memory_};
  Own<cl_event> acquired;
  Own<cl_event> written;
  ASSERT_EQ(this->acquire_(queue, 1, list, 0, nullptr, acquired.Out()), CL_SUCCESS);
  ASSERT_EQ(clEnqueueWriteBuffer(queue, this->memory_, CL_FALSE, 0, this->kBytes,
                                 this->after_.data(), 1, acquired.AsList(), written.Out()),
            CL_SUCCESS);
  ASSERT_EQ(this->release_(queue, 1, list, 1, written.AsList(), nullptr), CL_SUCCESS);
  EXPECT_TRUE(this->app().Read(this->buffer_.Get()) == this->after_);
}

// An acquire waits for its list, a user event among it, and blocks nobody.
TYPED_TEST(D3dOrder, AcquireWaitsForUserEvent) {
  cl_int status = CL_SUCCESS;
  Own<cl_event> gate(clCreateUserEvent(this->context(), &status));
  ASSERT_EQ(status, CL_SUCCESS);
  const cl_mem list[] = {this->memory_};
  Own<cl_event> acquired;
  ASSERT_EQ(this->acquire_(this->queue(), 1, list, 1, gate.AsList(), acquired.Out()), CL_SUCCESS);
  EXPECT_GT(conformance::StatusOf(acquired), CL_COMPLETE);
  // Written after the call but before the gate: still Direct3D's turn, since nothing is acquired.
  this->app().Write(this->buffer_.Get(), 0, this->after_, this->kBytes, 1, 1);
  ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
  EXPECT_TRUE(this->ReadBuffer(this->memory_, this->kBytes) == this->after_);
  EXPECT_EQ(this->Release(this->memory_), CL_SUCCESS);
}

// A release behind a user event does not wait in the call, which nobody could end; its event does.
TYPED_TEST(D3dOrder, ReleaseBehindUserEvent) {
  ASSERT_EQ(this->Acquire(this->memory_), CL_SUCCESS);
  this->WriteBuffer(this->memory_, this->after_);
  cl_int status = CL_SUCCESS;
  Own<cl_event> gate(clCreateUserEvent(this->context(), &status));
  const cl_mem list[] = {this->memory_};
  Own<cl_event> released;
  ASSERT_EQ(this->release_(this->queue(), 1, list, 1, gate.AsList(), released.Out()), CL_SUCCESS);
  EXPECT_GT(conformance::StatusOf(released), CL_COMPLETE);
  ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
  ASSERT_EQ(clWaitForEvents(1, released.AsList()), CL_SUCCESS);
  EXPECT_TRUE(this->app().Read(this->buffer_.Get()) == this->after_);
}

// A user event that the release does not come behind does not keep it from waiting.
TYPED_TEST(D3dOrder, ReleaseBesideUserEvent) {
  cl_int status = CL_SUCCESS;
  Own<cl_event> gate(clCreateUserEvent(this->context(), &status));
  ASSERT_EQ(status, CL_SUCCESS);
  for (uint32_t round = 0; round < 20; ++round) {
    const Bytes theirs = Pattern(this->kBytes, 300 + round);
    ASSERT_EQ(this->Acquire(this->memory_), CL_SUCCESS);
    this->WriteBuffer(this->memory_, theirs);
    Own<cl_event> released;
    ASSERT_EQ(this->Release(this->memory_, released.Out()), CL_SUCCESS);
    EXPECT_EQ(conformance::StatusOf(released), CL_COMPLETE) << round;
    EXPECT_TRUE(this->app().Read(this->buffer_.Get()) == theirs) << round;
  }
}

// A wait list whose event failed fails the acquire's event, and the release's after it; Direct3D
// keeps what it had.
TYPED_TEST(D3dOrder, FailedWaitList) {
  cl_int status = CL_SUCCESS;
  Own<cl_event> gate(clCreateUserEvent(this->context(), &status));
  const cl_mem list[] = {this->memory_};
  Own<cl_event> acquired;
  ASSERT_EQ(this->acquire_(this->queue(), 1, list, 1, gate.AsList(), acquired.Out()), CL_SUCCESS);
  ASSERT_EQ(clSetUserEventStatus(gate, -5), CL_SUCCESS);
  EXPECT_EQ(clWaitForEvents(1, acquired.AsList()), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
  Own<cl_event> released;
  ASSERT_EQ(this->Release(this->memory_, released.Out()),
            CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
  EXPECT_EQ(clWaitForEvents(1, released.AsList()), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
  EXPECT_TRUE(this->app().Read(this->buffer_.Get()) == this->before_);
}

// With CL_CONTEXT_INTEROP_USER_SYNC the application waits for the release's event itself.
TYPED_TEST(D3dOrder, UserSync) {
  std::vector<cl_context_properties> properties = this->Properties(this->app().device());
  properties.insert(properties.end() - 1, {CL_CONTEXT_INTEROP_USER_SYNC, CL_TRUE});
  this->memory_.Reset();
  this->LetContextGo();
  this->MakeContext(properties);
  this->memory_ = this->FromBuffer(this->buffer_.Get());
  ASSERT_EQ(this->Acquire(this->memory_), CL_SUCCESS);
  this->WriteBuffer(this->memory_, this->after_);
  Own<cl_event> released;
  ASSERT_EQ(this->Release(this->memory_, released.Out()), CL_SUCCESS);
  ASSERT_EQ(clWaitForEvents(1, released.AsList()), CL_SUCCESS);
  EXPECT_TRUE(this->app().Read(this->buffer_.Get()) == this->after_);
}

// Acquired on one queue, used on another behind an event, released on a third.
TYPED_TEST(D3dOrder, AcrossQueues) {
  Own<cl_command_queue> second = this->NewQueue();
  Own<cl_command_queue> third = this->NewQueue();
  Own<cl_event> acquired;
  Own<cl_event> written;
  ASSERT_EQ(this->Acquire(this->memory_, acquired.Out()), CL_SUCCESS);
  ASSERT_EQ(clEnqueueWriteBuffer(second, this->memory_, CL_FALSE, 0, this->kBytes,
                                 this->after_.data(), 1, acquired.AsList(), written.Out()),
            CL_SUCCESS);
  const cl_mem list[] = {this->memory_};
  ASSERT_EQ(this->release_(third, 1, list, 1, written.AsList(), nullptr), CL_SUCCESS);
  EXPECT_TRUE(this->app().Read(this->buffer_.Get()) == this->after_);
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
