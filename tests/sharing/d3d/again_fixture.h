// SPDX-License-Identifier: Apache-2.0
// When a native object that has had a memory object may have the next, and threads that have one
// after the other: scenes as those of order_fixture.h, and with them. Owner: each test has its own.
// Thread: the test's.
#pragma once

#include <deque>
#include <thread>
#include <vector>

#include "tests/sharing/d3d/counts_fixture.h"

namespace sluice::d3dtest {

template <typename Base>
class WithNext : public WithCounts<Base> {
 protected:
  using WithCounts<Base>::kBytes;
  using WithCounts<Base>::memory_;

  // The code of a second memory object of one that has one.
  virtual cl_int made_twice() const = 0;

  // A memory object for each frame, and no call that waits for OpenCL: one that was released is
  // none any more, whatever its commands still do.
  void FramesWithoutFinish() {
    for (const cl_command_queue_properties flags :
         {cl_command_queue_properties{0},
          cl_command_queue_properties{CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE}}) {
      if (flags != 0 && !this->HasOutOfOrder()) continue;
      this->Restart(CL_TRUE);
      if (this->HasFatalFailure()) return;
      const std::vector<ULONG> before = this->Counted();
      Own<cl_command_queue> queue = this->NewQueue(flags);
      std::deque<Bytes> frames;  // Their place until they have been written.
      for (uint32_t frame = 0; frame < 60; ++frame) {
        frames.push_back(Pattern(kBytes, 400 + frame));
        memory_ = this->FromObject();
        ASSERT_NE(memory_.get(), nullptr) << frame;
        const cl_mem list[] = {memory_};
        ASSERT_EQ(this->acquire_(queue, 1, list, 0, nullptr, nullptr), CL_SUCCESS);
        ASSERT_EQ(this->EnqueueWrite(queue, frames.back()), CL_SUCCESS);
        ASSERT_EQ(this->release_(queue, 1, list, 0, nullptr, nullptr), CL_SUCCESS);
        memory_.Reset();
      }
      ASSERT_EQ(clFinish(queue), CL_SUCCESS);
      EXPECT_EQ(this->Counted(), before);
      EXPECT_TRUE(this->Drawn() == frames.back());
    }
  }

  // Refused while the application has the other, and while that one's commands wait for the
  // application; let go of as soon as they do no more.
  void MadeTwice() {
    this->Restart(CL_TRUE);
    if (this->HasFatalFailure()) return;
    const std::vector<ULONG> before = this->Counted();
    memory_ = this->FromObject();
    this->FromObject(made_twice());
    Own<cl_event> gate = this->NewGate();
    const cl_mem list[] = {memory_};
    ASSERT_EQ(this->acquire_(this->queue(), 1, list, 1, gate.AsList(), nullptr), CL_SUCCESS);
    ASSERT_EQ(this->EnqueueWrite(this->queue(), this->after_), CL_SUCCESS);
    ASSERT_EQ(this->release_(this->queue(), 1, list, 0, nullptr, nullptr), CL_SUCCESS);
    memory_.Reset();
    this->FromObject(made_twice());
    ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
    memory_ = this->FromObject();
    memory_.Reset();
    EXPECT_EQ(this->Counted(), before);
    EXPECT_TRUE(this->Drawn() == this->after_);
  }

  // Two threads share one object by memory objects of their own: each has it, or is refused.
  void TurnsOfTwoThreads() {
    this->Restart(CL_TRUE);
    if (this->HasFatalFailure()) return;
    const std::vector<ULONG> before = this->Counted();
    const auto frames = [this] {
      Own<cl_command_queue> queue = this->NewQueue();
      for (int done = 0; done < 20;) {
        cl_int status = CL_SUCCESS;
        Own<cl_mem> memory(this->TryFromObject(&status));
        if (status == made_twice()) {
          std::this_thread::yield();
          continue;
        }
        ASSERT_EQ(status, CL_SUCCESS);
        const cl_mem list[] = {memory};
        EXPECT_EQ(this->acquire_(queue, 1, list, 0, nullptr, nullptr), CL_SUCCESS);
        EXPECT_EQ(this->release_(queue, 1, list, 0, nullptr, nullptr), CL_SUCCESS);
        ++done;
      }
      EXPECT_EQ(clFinish(queue), CL_SUCCESS);
    };
    std::thread other(frames);
    frames();
    other.join();
    EXPECT_EQ(this->Counted(), before);
  }

  // A thread that has shared in a context of its own, lets go of all of it and returns has ended
  // then, though threads of the driver's end at the same time.
  void ThreadsThatSharedEnd() {
    for (int round = 0; round < 20; ++round) {
      std::thread([this] {
        this->Restart(CL_FALSE);
        memory_ = this->FromObject();
        EXPECT_EQ(this->Acquire(memory_), CL_SUCCESS);
        EXPECT_EQ(this->Release(memory_), CL_SUCCESS);
        EXPECT_EQ(clFinish(this->queue()), CL_SUCCESS);
        memory_.Reset();
        this->LetContextGo();
      }).join();
    }
  }
};

}  // namespace sluice::d3dtest
