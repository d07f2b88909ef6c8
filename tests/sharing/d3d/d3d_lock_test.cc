// SPDX-License-Identifier: Apache-2.0
// Applications that have entered their device's lock and wait for OpenCL in it. Commands under way
// on another thread of the driver's cannot go on then, and Direct3D has no wait for the lock that
// ends. The commands fail in time, and once the lock is left all is as before.
#include <cstdio>

#include "tests/conformance/harness/child_process.h"
#include "tests/sharing/d3d/d3d_fixture.h"

namespace sluice::d3dtest {
namespace {

template <typename E>
class D3dLock : public WithD3d<E> {
 protected:
  void SetUp() override {
    WithD3d<E>::SetUp();
    ASSERT_EQ(this->app().commands()->QueryInterface(__uuidof(typename E::Multithread), &lock_),
              S_OK);
    buffer_ = this->app().Buffer(kBytes, before_.data());
    other_buffer_ = this->app().Buffer(kBytes, before_.data());
    memory_ = this->FromBuffer(buffer_.Get());
    other_ = this->FromBuffer(other_buffer_.Get());
  }
  // An acquire, a write and a release, which Direct3D sees.
  void ExpectShares(cl_mem memory, typename E::Buffer* buffer) {
    ASSERT_EQ(this->Acquire(memory), CL_SUCCESS);
    EXPECT_TRUE(this->ReadBuffer(memory, kBytes) == before_);
    this->WriteBuffer(memory, after_);
    ASSERT_EQ(this->Release(memory), CL_SUCCESS);
    EXPECT_TRUE(this->app().Read(buffer) == after_);
  }

  static constexpr size_t kBytes = 1024;
  const Bytes before_ = Pattern(kBytes, 1);
  const Bytes after_ = Pattern(kBytes, 2);
  Com<typename E::Multithread> lock_;
  Com<typename E::Buffer> buffer_;
  Com<typename E::Buffer> other_buffer_;
  Own<cl_mem> memory_;
  Own<cl_mem> other_;
};
TYPED_TEST_SUITE(D3dLock, Extensions);

// Every kind of wait returns, with an error: of the acquire that the device keeps waiting, of what
// comes behind it in the queue, and of another object's in another queue. Nothing changes when the
// lock is left, and the next round is as any other.
TYPED_TEST(D3dLock, WaitsForOpenClEnd) {
  Own<cl_command_queue> second = this->NewQueue();
  this->lock_->Enter();
  Own<cl_event> acquired;
  Own<cl_event> others;
  Bytes read(this->kBytes);
  ASSERT_EQ(this->Acquire(this->memory_, acquired.Out()), CL_SUCCESS);
  const cl_mem list[] = {this->other_};
  ASSERT_EQ(this->acquire_(second, 1, list, 0, nullptr, others.Out()), CL_SUCCESS);
  EXPECT_LT(clEnqueueReadBuffer(this->queue(), this->memory_, CL_TRUE, 0, this->kBytes, read.data(),
                                0, nullptr, nullptr),
            0);
  EXPECT_EQ(clWaitForEvents(1, acquired.AsList()), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
  EXPECT_EQ(conformance::StatusOf(acquired), CL_OUT_OF_RESOURCES);
  EXPECT_EQ(clFinish(second), CL_OUT_OF_RESOURCES);
  EXPECT_EQ(conformance::StatusOf(others), CL_OUT_OF_RESOURCES);
  // Releases of what these acquires did not bring: at once, and their events tell.
  Own<cl_event> released;
  Own<cl_event> others_released;
  EXPECT_EQ(this->Release(this->memory_, released.Out()), CL_SUCCESS);
  EXPECT_LT(conformance::StatusOf(released), 0);
  EXPECT_EQ(this->release_(second, 1, list, 0, nullptr, others_released.Out()), CL_SUCCESS);
  EXPECT_LT(conformance::StatusOf(others_released), 0);
  this->lock_->Leave();
  EXPECT_TRUE(this->app().Read(this->buffer_.Get()) == this->before_);
  this->ExpectShares(this->memory_, this->buffer_.Get());
  this->ExpectShares(this->other_, this->other_buffer_.Get());
}

// A release works on the thread that waits for it, whose lock it is.
TYPED_TEST(D3dLock, ReleaseWithinIt) {
  ASSERT_EQ(this->Acquire(this->memory_), CL_SUCCESS);
  this->WriteBuffer(this->memory_, this->after_);
  this->lock_->Enter();
  EXPECT_EQ(this->Release(this->memory_), CL_SUCCESS);
  EXPECT_TRUE(this->app().Read(this->buffer_.Get()) == this->after_);
  this->lock_->Leave();
}

// Everything that goes with the last command is waited for, but not by the thread that keeps the
// lock from it.
TYPED_TEST(D3dLock, LastCommandEndsWithinIt) {
  ASSERT_EQ(this->Acquire(this->memory_), CL_SUCCESS);
  ASSERT_EQ(clFinish(this->queue()), CL_SUCCESS);
  this->lock_->Enter();
  ASSERT_EQ(clEnqueueWriteBuffer(this->queue(), this->memory_, CL_FALSE, 0, this->kBytes,
                                 this->after_.data(), 0, nullptr, nullptr),
            CL_SUCCESS);
  this->memory_.Reset();
  EXPECT_EQ(clFinish(this->queue()), CL_SUCCESS);
  EXPECT_EQ(clFinish(this->queue()), CL_SUCCESS);
  this->lock_->Leave();
  this->ExpectShares(this->other_, this->other_buffer_.Get());
}

// An application of that kind that lets go of all it has, and ends, without having left the lock.
class EndsWithinItsLock : public D3dLock<Khr11> {
 public:
  void TestBody() override {
    SetUp();
    if (HasFatalFailure()) return;
    lock_->Enter();
    EXPECT_EQ(Acquire(memory_), CL_SUCCESS);
    EXPECT_EQ(clFlush(queue()), CL_SUCCESS);
    memory_.Reset();
    other_.Reset();
    LetContextGo();
    std::puts("all is let go");
    std::fflush(stdout);
  }
};

CHILD_SCENE(EndsWithinItsLock) {
  EndsWithinItsLock().TestBody();
  return 0;
}

TEST(D3dLockEnd, NothingWaitsForTheLock) {
  const conformance::ChildResult result = conformance::RunInChild("EndsWithinItsLock");
  EXPECT_FALSE(result.timed_out);
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_NE(result.output.find("all is let go"), std::string::npos) << result.output;
}

}  // namespace
}  // namespace sluice::d3dtest
