// SPDX-License-Identifier: Apache-2.0
#include <time.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "tests/conformance/harness/fixtures.h"

namespace sluice::conformance {
namespace {

class ThreadsTest : public WithProgram {
 protected:
  static void OnThreads(int count, const std::function<void(int)>& body) {
    std::vector<std::thread> threads;
    for (int i = 0; i < count; ++i) threads.emplace_back(body, i);
    for (std::thread& thread : threads) thread.join();
  }
};

// Many threads on one context, each with its own queue, kernel and buffers, all get their own
// results.
TEST_F(ThreadsTest, OwnQueuesOnOneContext) {
  OnThreads(8, [this](int number) {
    const Own<cl_command_queue> mine = Queue();
    const Own<cl_kernel> kernel = Kernel("fill_int");
    for (cl_int round = 0; round < 30; ++round) {
      const Own<cl_mem> buffer = Buffer(1024 * sizeof(cl_int));
      const cl_int value = number * 1000 + round;
      SetArg(kernel, 0, buffer);
      SetArg(kernel, 1, value);
      ASSERT_EQ(Launch(mine, kernel, 1024), CL_SUCCESS);
      std::vector<cl_int> back(1024);
      ASSERT_EQ(
          clEnqueueReadBuffer(mine, buffer, CL_TRUE, 0, 4096, back.data(), 0, nullptr, nullptr),
          CL_SUCCESS);
      ASSERT_EQ(back, std::vector<cl_int>(1024, value));
    }
  });
}

// A thread that waits for the device leaves the processor to others, also when its first wait after
// a pause finds the driver's own thread where it wants to be.
TEST_F(ThreadsTest, WaitsWithoutTheProcessor) {
  if (!TheHarness().IsSluice()) GTEST_SKIP() << "how the native driver waits is its own affair";
  const auto processor_seconds = [] {
    timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
  };
  const Own<cl_mem> data = BufferOf(std::vector<cl_int>(16, 0));
  const Own<cl_kernel> kernel = Kernel("add_one");
  SetArg(kernel, 0, data);
  ASSERT_EQ(Launch(queue(), kernel, 16), CL_SUCCESS);
  Finish();
  // The application's own work, and then a long wait: the lengths are what is tested.
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const Own<cl_event> gate = UserEvent();
  const size_t items = 16;
  ASSERT_EQ(clEnqueueNDRangeKernel(queue(), kernel, 1, nullptr, &items, nullptr, 1, gate.AsList(),
                                   nullptr),
            CL_SUCCESS);
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    EXPECT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
  });
  const double before = processor_seconds();
  const auto start = std::chrono::steady_clock::now();
  Finish();
  const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - start;
  EXPECT_LT(processor_seconds() - before, waited.count() / 4);
  opener.join();
  EXPECT_EQ(Read<cl_int>(data, 16), std::vector<cl_int>(16, 2));
}

// Many threads on one in-order queue: every command of every thread runs, and events of all
// complete.
TEST_F(ThreadsTest, OneQueueForAll) {
  const Own<cl_mem> data = BufferOf(std::vector<cl_int>(16, 0));
  const Own<cl_kernel> kernel = Kernel("add_one");
  SetArg(kernel, 0, data);
  OnThreads(6, [&](int) {
    for (int i = 0; i < 100; ++i) {
      Own<cl_event> event;
      ASSERT_EQ(Launch(queue(), kernel, 16, event.Out()), CL_SUCCESS);
      if (i % 20 == 0) {
        ASSERT_EQ(clWaitForEvents(1, event.AsList()), CL_SUCCESS);
      }
    }
  });
  EXPECT_EQ(Read<cl_int>(data, 16), std::vector<cl_int>(16, 600));
}

// Objects are made, counted and released from many threads at once; the context's own objects stay
// whole.
TEST_F(ThreadsTest, CreateRetainRelease) {
  const Own<cl_mem> shared = BufferOf(Counting(64));
  OnThreads(8, [&](int) {
    for (int i = 0; i < 100; ++i) {
      ASSERT_EQ(clRetainMemObject(shared), CL_SUCCESS);
      ASSERT_EQ(clRetainContext(context()), CL_SUCCESS);
      const Own<cl_mem> own = Buffer(4096);
      const Own<cl_event> event = UserEvent();
      ASSERT_EQ(clSetUserEventStatus(event, CL_COMPLETE), CL_SUCCESS);
      ASSERT_EQ(clReleaseContext(context()), CL_SUCCESS);
      ASSERT_EQ(clReleaseMemObject(shared), CL_SUCCESS);
    }
  });
  cl_uint count = 0;
  EXPECT_EQ(clGetMemObjectInfo(shared, CL_MEM_REFERENCE_COUNT, sizeof(count), &count, nullptr),
            CL_SUCCESS);
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(Read<cl_int>(shared, 64), Counting(64));
}

// A program is built in one thread while another launches kernels of another program.
TEST_F(ThreadsTest, BuildWhileLaunching) {
  std::atomic<bool> built{false};
  const Own<cl_mem> data = BufferOf(std::vector<cl_int>(64, 0));
  const Own<cl_kernel> kernel = Kernel("add_one");
  SetArg(kernel, 0, data);
  std::thread builder([&] {
    for (int i = 0; i < 3; ++i) {
      Program("kernel void k" + std::to_string(i) +
              "(global int* p) { for (int i = 0; i < 100; ++i) *p += i; }");
    }
    built = true;
  });
  cl_int launches = 0;
  do {
    EXPECT_EQ(Launch(queue(), kernel, 64), CL_SUCCESS);
    ++launches;
    EXPECT_EQ(clFinish(queue()), CL_SUCCESS);
  } while (!built);
  builder.join();
  EXPECT_EQ(Read<cl_int>(data, 64), std::vector<cl_int>(64, launches));
}

// One thread waits for events that another thread's user event releases.
TEST_F(ThreadsTest, WaitersAreWoken) {
  for (int round = 0; round < 30; ++round) {
    const Own<cl_event> gate = UserEvent();
    Own<cl_event> held;
    ASSERT_EQ(clEnqueueMarkerWithWaitList(queue(), 1, gate.AsList(), held.Out()), CL_SUCCESS);
    ASSERT_EQ(clFlush(queue()), CL_SUCCESS);
    std::vector<std::thread> waiters;
    std::atomic<int> woken{0};
    for (int i = 0; i < 3; ++i) {
      waiters.emplace_back([&, i] {
        EXPECT_EQ(
            i == 0 ? clFinish(queue()) : clWaitForEvents(1, i == 1 ? held.AsList() : gate.AsList()),
            CL_SUCCESS);
        woken.fetch_add(1);
      });
    }
    ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
    for (std::thread& waiter : waiters) waiter.join();
    EXPECT_EQ(woken.load(), 3);
  }
}

// Objects released by one thread while another thread's commands use them are kept by those
// commands.
TEST_F(ThreadsTest, ReleaseDuringUse) {
  for (int round = 0; round < 20; ++round) {
    cl_mem raw = Buffer(1 << 16).Give();
    const Own<cl_kernel> kernel = Kernel("add_one");
    EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof(raw), &raw), CL_SUCCESS);
    const Own<cl_event> gate = UserEvent();
    const size_t global = (1 << 16) / sizeof(cl_int);
    ASSERT_EQ(clEnqueueNDRangeKernel(queue(), kernel, 1, nullptr, &global, nullptr, 1,
                                     gate.AsList(), nullptr),
              CL_SUCCESS);
    std::thread releaser([&] { EXPECT_EQ(clReleaseMemObject(raw), CL_SUCCESS); });
    ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
    releaser.join();
    Finish();
  }
}

// Transfers of several threads through one context do not mix.
TEST_F(ThreadsTest, TransfersDoNotMix) {
  OnThreads(4, [this](int number) {
    const Own<cl_command_queue> mine = Queue();
    const size_t bytes = size_t{1} << 20;
    const Own<cl_mem> buffer = Buffer(bytes);
    for (int round = 0; round < 4; ++round) {
      const std::vector<cl_uchar> sent(bytes, static_cast<cl_uchar>(number * 16 + round));
      std::vector<cl_uchar> back(bytes);
      ASSERT_EQ(
          clEnqueueWriteBuffer(mine, buffer, CL_FALSE, 0, bytes, sent.data(), 0, nullptr, nullptr),
          CL_SUCCESS);
      ASSERT_EQ(
          clEnqueueReadBuffer(mine, buffer, CL_TRUE, 0, bytes, back.data(), 0, nullptr, nullptr),
          CL_SUCCESS);
      ASSERT_TRUE(back == sent);
    }
  });
}

// Threads that end as soon as they have waited once take nothing with them: those that wait at that
// moment, and the next ones, get their results.
TEST_F(ThreadsTest, EndedThreads) {
  const Own<cl_mem> data = BufferOf(Counting(64));
  OnThreads(3, [&](int) {
    for (int round = 0; round < 150; ++round) {
      std::thread waiter([&] { EXPECT_EQ(Read<cl_int>(data, 64), Counting(64)); });
      waiter.join();
    }
  });
}

// A context that a thread made which has ended is as good as any.
TEST_F(ThreadsTest, ContextOfAnEndedThread) {
  for (int round = 0; round < 10; ++round) {
    Own<cl_context> made;
    std::thread maker([&] { made = NewContext(); });
    maker.join();
    const Own<cl_command_queue> queue =
        MAKE("clCreateCommandQueueWithProperties.thread",
             clCreateCommandQueueWithProperties(made, device(), nullptr, error));
    EXPECT_EQ(clFinish(queue), CL_SUCCESS);
  }
}

// Several contexts in several threads live beside each other.
TEST_F(ThreadsTest, ManyContexts) {
  OnThreads(4, [this](int number) {
    for (int round = 0; round < 5; ++round) {
      const Own<cl_context> mine = NewContext();
      const Own<cl_command_queue> queue =
          MAKE("clCreateCommandQueueWithProperties.thread",
               clCreateCommandQueueWithProperties(mine, device(), nullptr, error));
      const Own<cl_mem> buffer =
          MAKE("clCreateBuffer.thread",
               clCreateBuffer(mine, CL_MEM_READ_WRITE, sizeof(cl_int), nullptr, error));
      const cl_int value = number * 100 + round;
      cl_int back = -1;
      ASSERT_EQ(clEnqueueFillBuffer(queue, buffer, &value, sizeof(value), 0, sizeof(value), 0,
                                    nullptr, nullptr),
                CL_SUCCESS);
      ASSERT_EQ(
          clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof(back), &back, 0, nullptr, nullptr),
          CL_SUCCESS);
      ASSERT_EQ(back, value);
    }
  });
}

}  // namespace
}  // namespace sluice::conformance
