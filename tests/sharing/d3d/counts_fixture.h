// SPDX-License-Identifier: Apache-2.0
// Direct3D's counts of an object and its device while commands use them: scenes as those of
// order_fixture.h, and with them. Owner: each test has its own. Thread: the test's, and in Told the
// callbacks'.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "tests/sharing/d3d/order_fixture.h"

namespace sluice::d3dtest {

template <typename Base>
class WithCounts : public WithOrder<Base> {
 protected:
  // Of the object, and of its device.
  virtual std::vector<ULONG> Counted() = 0;

  // A memory object that is let go of while commands use it is held until the last has ended, and
  // no longer. Nothing is held when a call returns that waited for that, whatever the call and the
  // command.
  void NothingIsHeldWhenWaitedFor() {
    for (const cl_bool user_sync : {CL_FALSE, CL_TRUE}) {
      this->Restart(user_sync);
      if (this->HasFatalFailure()) return;
      const std::vector<ULONG> before = Counted();
      for (int round = 0; round < 40; ++round) {
        const bool releases = (round & 1) != 0;
        Own<cl_event> last;
        this->memory_ = this->FromObject();
        ASSERT_EQ(this->Acquire(this->memory_), CL_SUCCESS);
        ASSERT_EQ(this->EnqueueWrite(this->queue(), this->after_, 0, nullptr,
                                     releases ? nullptr : last.Out()),
                  CL_SUCCESS);
        if (releases) {
          ASSERT_EQ(this->Release(this->memory_, last.Out()), CL_SUCCESS);
        }
        this->memory_.Reset();
        WaitBy(round / 2 % 4, last);
        EXPECT_EQ(Counted(), before) << "user sync " << user_sync << ", round " << round;
      }
    }
  }

  // Nor when the application has released all it had, in whatever order, of what has ended.
  void NothingIsHeldAfterTheLastReleases() {
    this->memory_.Reset();
    this->LetContextGo();
    const std::vector<ULONG> before = Counted();
    for (const cl_bool user_sync : {CL_FALSE, CL_TRUE}) {
      for (const cl_command_queue_properties flags :
           {cl_command_queue_properties{0},
            cl_command_queue_properties{CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE}}) {
        if (flags != 0 && !this->HasOutOfOrder()) continue;
        for (int round = 0; round < 9; ++round) {
          this->Restart(user_sync);
          if (this->HasFatalFailure()) return;
          Own<cl_command_queue> queue = this->NewQueue(flags);
          Own<cl_event> released;
          this->memory_ = this->FromObject();
          const cl_mem list[] = {this->memory_};
          ASSERT_EQ(this->acquire_(queue, 1, list, 0, nullptr, nullptr), CL_SUCCESS);
          ASSERT_EQ(this->EnqueueWrite(queue, this->after_), CL_SUCCESS);
          ASSERT_EQ(this->release_(queue, 1, list, 0, nullptr, released.Out()), CL_SUCCESS);
          EXPECT_EQ(clWaitForEvents(1, released.AsList()), CL_SUCCESS);
          released.Reset();
          if (round % 3 == 1) queue.Reset();
          if (round % 3 != 0) this->LetContextGo();
          this->memory_.Reset();
          queue.Reset();
          this->LetContextGo();
          EXPECT_EQ(Counted(), before)
              << "user sync " << user_sync << ", queue " << flags << ", round " << round;
        }
      }
    }
  }

  // Nor after a release that fails, also with commands before it.
  void NothingIsHeldAfterAFailedRelease() {
    this->Restart(CL_FALSE);
    if (this->HasFatalFailure()) return;
    const std::vector<ULONG> before = Counted();
    for (int round = 0; round < 10; ++round) {
      cl_int status = CL_SUCCESS;
      Own<cl_event> failed(clCreateUserEvent(this->context(), &status));
      ASSERT_EQ(status, CL_SUCCESS);
      ASSERT_EQ(clSetUserEventStatus(failed, -1), CL_SUCCESS);
      this->memory_ = this->FromObject();
      const cl_mem list[] = {this->memory_};
      ASSERT_EQ(this->Acquire(this->memory_), CL_SUCCESS);
      ASSERT_EQ(this->EnqueueWrite(this->queue(), this->after_), CL_SUCCESS);
      EXPECT_EQ(this->release_(this->queue(), 1, list, 1, failed.AsList(), nullptr), CL_SUCCESS);
      this->memory_.Reset();
      EXPECT_EQ(Counted(), before) << round;
    }
  }

  // Nor, of what has not, for longer than that takes, though nobody waits or makes any call.
  void NothingIsHeldForLong() {
    this->memory_.Reset();
    this->LetContextGo();
    const std::vector<ULONG> before = Counted();
    this->Restart(CL_FALSE);
    if (this->HasFatalFailure()) return;
    for (int i = 0; i < 200; ++i) {  // With events that are released at once.
      Own<cl_event> marked;
      ASSERT_EQ(clEnqueueMarkerWithWaitList(this->queue(), 0, nullptr, marked.Out()), CL_SUCCESS);
    }
    this->LetContextGo();
    EXPECT_EQ(CountedAtLast(before), before);
    for (const bool shared_last : {true, false}) {
      this->Restart(CL_TRUE);
      if (this->HasFatalFailure()) return;
      Own<cl_mem> plain = PlainBuffer(this->context());
      uint32_t word = 0;
      Own<cl_event> last;
      this->memory_ = this->FromObject();
      ASSERT_EQ(this->Acquire(this->memory_), CL_SUCCESS);
      ASSERT_EQ(this->EnqueueWrite(this->queue(), this->after_), CL_SUCCESS);
      ASSERT_EQ(this->Release(this->memory_), CL_SUCCESS);
      if (!shared_last) {
        ASSERT_EQ(clEnqueueWriteBuffer(this->queue(), plain, CL_FALSE, 0, sizeof(word), &word, 0,
                                       nullptr, last.Out()),
                  CL_SUCCESS);
      }
      last.Reset();
      plain.Reset();
      this->memory_.Reset();
      this->LetContextGo();
      EXPECT_EQ(CountedAtLast(before), before) << "shared last " << shared_last;
    }
  }

  // Nor in a callback: of the last command, of the memory object itself, or of the context.
  void NothingIsHeldInCallbacks() {
    this->memory_.Reset();
    this->LetContextGo();
    // Here, for a callback that has not returned may keep the context before.
    const std::vector<ULONG> without_context = Counted();
    std::vector<ULONG> before = without_context;
    ++before.back();  // The context's reference of its device.
    for (const cl_bool user_sync : {CL_FALSE, CL_TRUE}) {
      this->Restart(user_sync);
      if (this->HasFatalFailure()) return;
      for (int round = 0; round < 40; ++round) {
        Own<cl_event> last;
        Told told{this};
        this->memory_ = this->FromObject();
        ASSERT_EQ(this->Acquire(this->memory_), CL_SUCCESS);
        ASSERT_EQ(this->EnqueueWrite(this->queue(), this->after_), CL_SUCCESS);
        ASSERT_EQ(this->Release(this->memory_, last.Out()), CL_SUCCESS);
        if (round % 2 == 0) {
          ASSERT_EQ(clSetMemObjectDestructorCallback(this->memory_, &Told::OfMemory, &told),
                    CL_SUCCESS);
        }
        this->memory_.Reset();
        if (round % 2 != 0) {
          ASSERT_EQ(clSetEventCallback(last, CL_COMPLETE, &Told::OfEvent, &told), CL_SUCCESS);
        }
        ASSERT_EQ(clFlush(this->queue()), CL_SUCCESS);
        EXPECT_EQ(told.Wait(), before) << "user sync " << user_sync << ", round " << round;
      }
      ASSERT_EQ(clFinish(this->queue()), CL_SUCCESS);
    }
    for (int round = 0; round < 10; ++round) {
      this->Restart(CL_TRUE);
      if (this->HasFatalFailure()) return;
      Told told{this};
      ASSERT_EQ(clSetContextDestructorCallback(this->context(), &Told::OfContext, &told),
                CL_SUCCESS);
      this->memory_ = this->FromObject();
      ASSERT_EQ(this->Acquire(this->memory_), CL_SUCCESS);
      ASSERT_EQ(this->EnqueueWrite(this->queue(), this->after_), CL_SUCCESS);
      ASSERT_EQ(this->Release(this->memory_), CL_SUCCESS);
      this->memory_.Reset();
      this->LetContextGo();
      EXPECT_EQ(told.Wait(), without_context) << "context " << round;
    }
  }

 private:
  // The counts of a callback.
  struct Told {
    WithCounts* scene;
    std::vector<ULONG> counted = {};
    std::atomic<bool> there = false;

    static void CL_CALLBACK OfEvent(cl_event, cl_int, void* data) { Count(data); }
    static void CL_CALLBACK OfMemory(cl_mem, void* data) { Count(data); }
    static void CL_CALLBACK OfContext(cl_context, void* data) { Count(data); }
    static void Count(void* data) {
      Told& told = *static_cast<Told*>(data);
      told.counted = told.scene->Counted();
      told.there.store(true);
    }
    const std::vector<ULONG>& Wait() {
      while (!there.load()) std::this_thread::yield();
      return counted;
    }
  };

  // The counts once they are `expected`, or after a long wait in vain.
  std::vector<ULONG> CountedAtLast(const std::vector<ULONG>& expected) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    std::vector<ULONG> counted = Counted();
    while (counted != expected && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::yield();
      counted = Counted();
    }
    return counted;
  }

  // For the last command of the queue, whose event `last` is: each way that OpenCL has.
  void WaitBy(int way, cl_event last) {
    if (way == 0) {
      EXPECT_EQ(clFinish(this->queue()), CL_SUCCESS);
    } else if (way == 1) {
      EXPECT_EQ(clWaitForEvents(1, &last), CL_SUCCESS);
    } else if (way == 2) {
      cl_int status = CL_SUCCESS;
      uint32_t word = 0;
      Own<cl_mem> plain(
          clCreateBuffer(this->context(), CL_MEM_READ_WRITE, sizeof(word), nullptr, &status));
      EXPECT_EQ(clEnqueueReadBuffer(this->queue(), plain, CL_TRUE, 0, sizeof(word), &word, 0,
                                    nullptr, nullptr),
                CL_SUCCESS);
    } else {
      EXPECT_EQ(clFlush(this->queue()), CL_SUCCESS);
      while (conformance::StatusOf(last) > CL_COMPLETE) std::this_thread::yield();
      EXPECT_EQ(conformance::StatusOf(last), CL_COMPLETE);
    }
  }
};

}  // namespace sluice::d3dtest
