// SPDX-License-Identifier: Apache-2.0
#include "client_icd/base/copy_helpers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <future>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "broker/os/threads.h"

namespace sluice::client {
namespace {

std::vector<unsigned char> Counting(size_t bytes, unsigned char first) {
  std::vector<unsigned char> data(bytes);
  for (size_t i = 0; i < bytes; ++i) data[i] = static_cast<unsigned char>(first + i / 7);
  return data;
}

// Every byte is copied once, whatever the size, and none after Run has returned.
TEST(CopyHelpersTest, EveryByteOnce) {
  CopyHelpers helpers;
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{1} << 20, (size_t{5} << 20) + 3}) {
    const std::vector<unsigned char> from = Counting(bytes, 3);
    std::vector<unsigned char> to(bytes, 0);
    std::atomic<uint64_t> copied = 0;
    helpers.Expect(bytes);
    helpers.Run(bytes, [&](uint64_t offset, uint64_t size) {
      std::copy_n(from.data() + offset, size, to.data() + offset);
      copied += size;
    });
    EXPECT_EQ(copied.load(), bytes);
    EXPECT_EQ(to, from);
  }
}

// Whatever the alignment of either side, and nothing beside it.
TEST(CopyHelpersTest, StreamingCopies) {
  const std::vector<unsigned char> from = Counting(1000, 5);
  for (const size_t bytes : {0, 1, 63, 64, 65, 200, 700}) {
    for (size_t shift = 0; shift < 70; ++shift) {
      std::vector<unsigned char> to(1000, 0xee), wanted = to;
      std::copy_n(from.data() + shift / 3, bytes, wanted.data() + shift);
      StreamingCopy(to.data() + shift, from.data() + shift / 3, bytes);
      ASSERT_EQ(to, wanted) << bytes << " bytes, shifted by " << shift;
    }
  }
}

// Threads may copy at the same time, over and over: no job sees another's parts.
TEST(CopyHelpersTest, ManyAtOnce) {
  CopyHelpers helpers;
  std::vector<std::thread> threads;
  for (unsigned char id = 0; id < 4; ++id) {
    threads.emplace_back([&helpers, id] {
      const std::vector<unsigned char> from = Counting(3 << 20, id);
      for (int round = 0; round < 30; ++round) {
        std::vector<unsigned char> to(from.size(), 0xff);
        helpers.Run(from.size(), [&](uint64_t offset, uint64_t size) {
          std::memcpy(to.data() + offset, from.data() + offset, size);
        });
        ASSERT_EQ(to, from);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Run sleeps while it waits for a helper that gets no processor, which may need this thread's.
TEST(CopyHelpersTest, SleepsForASlowHelper) {
  CopyHelpers helpers(/*processors=*/1024);
  std::promise<int> told;
  std::promise<void> go_on;
  const std::shared_future<void> may_go_on = go_on.get_future().share();
  std::atomic<bool> helped = false;
  std::thread runner([&] {
    const int self = os::ThisThreadNumber();
    told.set_value(self);
    helpers.Run(1 << 20, [&](uint64_t, uint64_t) {
      if (os::ThisThreadNumber() != self) {
        helped = true;
        return may_go_on.wait();
      }
      while (!helped) std::this_thread::yield();
    });
  });
  const int number = told.get_future().get();
  const absl::Time end = absl::Now() + absl::Seconds(10);
  while (!(helped && os::ThreadSleeps(number)) && absl::Now() < end) std::this_thread::yield();
  EXPECT_TRUE(os::ThreadSleeps(number));
  go_on.set_value();
  runner.join();
}

// Helpers that outlive their owner touch nothing of it.
TEST(CopyHelpersTest, OwnersComeAndGo) {
  std::vector<unsigned char> from = Counting(2 << 20, 9), to(from.size());
  for (int i = 0; i < 50; ++i) {
    CopyHelpers helpers;
    helpers.Run(from.size(), [&](uint64_t offset, uint64_t size) {
      std::memcpy(to.data() + offset, from.data() + offset, size);
    });
  }
  EXPECT_EQ(to, from);
}

}  // namespace
}  // namespace sluice::client
