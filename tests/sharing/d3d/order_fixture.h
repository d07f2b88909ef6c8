// SPDX-License-Identifier: Apache-2.0
// The order of acquires, releases and what lies between, which is the same whatever Direct3D calls
// its objects: the scenes, over one object of kBytes bytes that a suite makes. Base is its fixture,
// WithD3d<E> or WithDx9. Owner: each test has its own. Thread: the test's.
#pragma once

#include <vector>

#include "tests/sharing/d3d/sharing_fixture.h"

namespace sluice::d3dtest {

template <typename Base>
class WithOrder : public Base {
 protected:
  static constexpr size_t kBytes = 1024;

  // Direct3D's side, without a flush or a wait.
  virtual void Draw(const Bytes& bytes) = 0;
  virtual Bytes Drawn() = 0;
  // OpenCL's, of all of memory_.
  virtual cl_int EnqueueRead(cl_command_queue queue, cl_bool blocking, uint8_t* to) = 0;
  virtual cl_int EnqueueWrite(cl_command_queue queue, const Bytes& from, cl_uint waits = 0,
                              const cl_event* list = nullptr, cl_event* event = nullptr) = 0;
  // Another memory object of the same object, in context().
  virtual cl_mem TryFromObject(cl_int* status) = 0;
  virtual std::vector<cl_context_properties> OwnProperties() = 0;

  Own<cl_mem> FromObject(cl_int expected = CL_SUCCESS) {
    cl_int status = 0x7fffffff;
    Own<cl_mem> memory(TryFromObject(&status));
    EXPECT_EQ(status, expected);
    EXPECT_EQ(memory.get() != nullptr, status == CL_SUCCESS);
    return memory;
  }

  // The events say what they are of, and of which queue; a release has ended when it returns.
  void Events(cl_command_type acquire, cl_command_type release) {
    Own<cl_event> acquired;
    Own<cl_event> released;
    ASSERT_EQ(this->Acquire(memory_, acquired.Out()), CL_SUCCESS);
    ASSERT_EQ(this->Release(memory_, released.Out()), CL_SUCCESS);
    EXPECT_EQ(conformance::StatusOf(released), CL_COMPLETE);
    EXPECT_EQ(conformance::StatusOf(acquired), CL_COMPLETE);
    ExpectEventIsOf(acquired, acquire);
    ExpectEventIsOf(released, release);
  }

  // Direct3D writes and the acquire sees it; OpenCL writes, without a finish, and Direct3D sees it:
  // many times over.
  void NothingIsWaitedForByHand() {
    for (uint32_t round = 0; round < 20; ++round) {
      const Bytes mine = Pattern(kBytes, 100 + round);
      const Bytes theirs = Pattern(kBytes, 200 + round);
      Bytes seen(kBytes);
      Draw(mine);
      ASSERT_EQ(this->Acquire(memory_), CL_SUCCESS);
      ASSERT_EQ(EnqueueRead(this->queue(), CL_FALSE, seen.data()), CL_SUCCESS);
      ASSERT_EQ(EnqueueWrite(this->queue(), theirs), CL_SUCCESS);
      ASSERT_EQ(this->Release(memory_), CL_SUCCESS);
      EXPECT_TRUE(Drawn() == theirs) << round;
      ASSERT_EQ(clFinish(this->queue()), CL_SUCCESS);
      EXPECT_TRUE(seen == mine) << round;
    }
  }

  // Also in a queue without order an acquire comes before all later commands, and a release after
  // all earlier ones (sections 9.6.7.6, 9.7.7.4 and 9.8.7.6; cl_nv_d3d11_sharing), without a list
  // or a wait.
  void HoldsBackAnOutOfOrderQueue() {
    if (!this->HasOutOfOrder()) GTEST_SKIP() << "no out-of-order queues";
    Own<cl_command_queue> queue = this->NewQueue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    const cl_mem list[] = {memory_};
    for (uint32_t round = 0; round < 10; ++round) {
      const Bytes mine = Pattern(kBytes, 100 + round);
      const Bytes theirs = Pattern(kBytes, 200 + round);
      Bytes seen(kBytes);
      Draw(mine);
      ASSERT_EQ(this->acquire_(queue, 1, list, 0, nullptr, nullptr), CL_SUCCESS);
      ASSERT_EQ(EnqueueRead(queue, CL_TRUE, seen.data()), CL_SUCCESS);
      EXPECT_TRUE(seen == mine) << round;
      ASSERT_EQ(EnqueueWrite(queue, theirs), CL_SUCCESS);
      ASSERT_EQ(this->release_(queue, 1, list, 0, nullptr, nullptr), CL_SUCCESS);
      EXPECT_TRUE(Drawn() == theirs) << round;
    }
  }

  // That holds behind a gate too: what comes later than an acquire that has not begun waits for it.
  void LaterCommandsWaitForTheAcquire() {
    if (!this->HasOutOfOrder()) GTEST_SKIP() << "no out-of-order queues";
    Own<cl_command_queue> queue = this->NewQueue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    const cl_mem list[] = {memory_};
    Own<cl_event> gate = NewGate();
    ASSERT_EQ(this->acquire_(queue, 1, list, 1, gate.AsList(), nullptr), CL_SUCCESS);
    Own<cl_event> written;
    ASSERT_EQ(EnqueueWrite(queue, after_, 0, nullptr, written.Out()), CL_SUCCESS);
    ASSERT_EQ(clFlush(queue), CL_SUCCESS);
    EXPECT_GT(conformance::StatusOf(written), CL_COMPLETE);
    ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
    ASSERT_EQ(this->release_(queue, 1, list, 0, nullptr, nullptr), CL_SUCCESS);
    EXPECT_TRUE(Drawn() == after_);
  }

  // Events order the rest there.
  void OutOfOrderQueue() {
    if (!this->HasOutOfOrder()) GTEST_SKIP() << "no out-of-order queues";
    Own<cl_command_queue> queue = this->NewQueue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    ThroughQueues(queue, queue, queue);
  }

  // Acquired on one queue, used on another behind an event, released on a third.
  void AcrossQueues() { ThroughQueues(this->queue(), this->NewQueue(), this->NewQueue()); }

  // An acquire waits for its list, a user event among it, and blocks nobody.
  void AcquireWaitsForUserEvent() {
    Own<cl_event> gate = NewGate();
    const cl_mem list[] = {memory_};
    Own<cl_event> acquired;
    ASSERT_EQ(this->acquire_(this->queue(), 1, list, 1, gate.AsList(), acquired.Out()), CL_SUCCESS);
    EXPECT_GT(conformance::StatusOf(acquired), CL_COMPLETE);
    // Drawn after the call but before the gate: still Direct3D's turn, since nothing is acquired.
    Draw(after_);
    ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
    Bytes seen(kBytes);
    EXPECT_EQ(EnqueueRead(this->queue(), CL_TRUE, seen.data()), CL_SUCCESS);
    EXPECT_TRUE(seen == after_);
    EXPECT_EQ(this->Release(memory_), CL_SUCCESS);
  }

  // A release behind a user event does not wait in the call, which nobody could end; its event
  // does.
  void ReleaseBehindUserEvent() {
    ASSERT_EQ(this->Acquire(memory_), CL_SUCCESS);
    ASSERT_EQ(EnqueueWrite(this->queue(), after_), CL_SUCCESS);
    Own<cl_event> gate = NewGate();
    const cl_mem list[] = {memory_};
    Own<cl_event> released;
    ASSERT_EQ(this->release_(this->queue(), 1, list, 1, gate.AsList(), released.Out()), CL_SUCCESS);
    EXPECT_GT(conformance::StatusOf(released), CL_COMPLETE);
    ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
    ASSERT_EQ(clWaitForEvents(1, released.AsList()), CL_SUCCESS);
    EXPECT_TRUE(Drawn() == after_);
  }

  // A user event that the release does not come behind does not keep it from waiting.
  void ReleaseBesideUserEvent() {
    Own<cl_event> gate = NewGate();
    for (uint32_t round = 0; round < 20; ++round) {
      const Bytes theirs = Pattern(kBytes, 300 + round);
      ASSERT_EQ(this->Acquire(memory_), CL_SUCCESS);
      ASSERT_EQ(EnqueueWrite(this->queue(), theirs), CL_SUCCESS);
      Own<cl_event> released;
      ASSERT_EQ(this->Release(memory_, released.Out()), CL_SUCCESS);
      EXPECT_EQ(conformance::StatusOf(released), CL_COMPLETE) << round;
      EXPECT_TRUE(Drawn() == theirs) << round;
    }
  }

  // A wait list whose event failed fails the acquire's event, and that of the release after it,
  // whose call has no code for it; Direct3D keeps what it had.
  void FailedWaitList() {
    constexpr cl_int kFailed = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
    Own<cl_event> gate = NewGate();
    const cl_mem list[] = {memory_};
    Own<cl_event> acquired;
    ASSERT_EQ(this->acquire_(this->queue(), 1, list, 1, gate.AsList(), acquired.Out()), CL_SUCCESS);
    ASSERT_EQ(clSetUserEventStatus(gate, -5), CL_SUCCESS);
    EXPECT_EQ(clWaitForEvents(1, acquired.AsList()), kFailed);
    Own<cl_event> released;
    ASSERT_EQ(this->Release(memory_, released.Out()), CL_SUCCESS);
    EXPECT_EQ(clWaitForEvents(1, released.AsList()), kFailed);
    EXPECT_TRUE(Drawn() == before_);
  }

  // With CL_CONTEXT_INTEROP_USER_SYNC the application waits for the release's event itself.
  void UserSync() {
    Restart(CL_TRUE);
    memory_ = FromObject();
    ASSERT_EQ(this->Acquire(memory_), CL_SUCCESS);
    ASSERT_EQ(EnqueueWrite(this->queue(), after_), CL_SUCCESS);
    Own<cl_event> released;
    ASSERT_EQ(this->Release(memory_, released.Out()), CL_SUCCESS);
    ASSERT_EQ(clWaitForEvents(1, released.AsList()), CL_SUCCESS);
    EXPECT_TRUE(Drawn() == after_);
  }

  // In a context of its own, without a memory object.
  void Restart(cl_bool user_sync) {
    std::vector<cl_context_properties> properties = OwnProperties();
    properties.insert(properties.end() - 1, {CL_CONTEXT_INTEROP_USER_SYNC, user_sync});
    memory_.Reset();
    this->LetContextGo();
    this->MakeContext(properties);
  }
  Own<cl_event> NewGate() {
    cl_int status = CL_SUCCESS;
    Own<cl_event> gate(clCreateUserEvent(this->context(), &status));
    EXPECT_EQ(status, CL_SUCCESS);
    return gate;
  }

  // The suite draws the one before the test.
  const Bytes before_ = Pattern(kBytes, 1);
  const Bytes after_ = Pattern(kBytes, 2);
  Own<cl_mem> memory_;

 private:
  void ExpectEventIsOf(cl_event event, cl_command_type expected) {
    cl_command_type type = 0;
    cl_command_queue queue = nullptr;
    EXPECT_EQ(clGetEventInfo(event, CL_EVENT_COMMAND_TYPE, sizeof(type), &type, nullptr),
              CL_SUCCESS);
    EXPECT_EQ(clGetEventInfo(event, CL_EVENT_COMMAND_QUEUE, sizeof(queue), &queue, nullptr),
              CL_SUCCESS);
    EXPECT_EQ(type, expected);
    EXPECT_EQ(queue, this->queue());
  }
  void ThroughQueues(cl_command_queue first, cl_command_queue second, cl_command_queue third) {
    Own<cl_event> acquired;
    Own<cl_event> written;
    const cl_mem list[] = {memory_};
    ASSERT_EQ(this->acquire_(first, 1, list, 0, nullptr, acquired.Out()), CL_SUCCESS);
    ASSERT_EQ(EnqueueWrite(second, after_, 1, acquired.AsList(), written.Out()), CL_SUCCESS);
    ASSERT_EQ(this->release_(third, 1, list, 1, written.AsList(), nullptr), CL_SUCCESS);
    EXPECT_TRUE(Drawn() == after_);
  }
};

}  // namespace sluice::d3dtest
