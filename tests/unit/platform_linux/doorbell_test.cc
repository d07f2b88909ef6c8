// SPDX-License-Identifier: Apache-2.0
#include "broker/os/doorbell.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "broker/os/shared_memory.h"

namespace sluice::os {
namespace {

// A word that differs already does not let the waiter sleep.
TEST(DoorbellTest, ChangedWordReturnsAtOnce) {
  std::atomic<uint32_t> word{1};
  EXPECT_TRUE(FutexWait(&word, 0, 1, -1));
}

// Without a wake the wait ends at its timeout, and says so.
TEST(DoorbellTest, TimeoutIsFalse) {
  std::atomic<uint32_t> word{0};
  EXPECT_FALSE(FutexWait(&word, 0, 1, 1'000'000));
  EXPECT_FALSE(FutexWait(&word, 0, 1, 0));
}

// A wake reaches only waiters that share a bit with it.
TEST(DoorbellTest, BitsetSelectsWaiters) {
  std::atomic<uint32_t> word{0};
  std::thread waiter([&] {
    while (word.load() == 0) FutexWait(&word, 0, 0b01, -1);
  });
  EXPECT_EQ(FutexWake(&word, 100, 0b10), 0);  // Asleep or not, it does not listen to this bit.
  word.store(1);
  FutexWake(&word, 1, 0b01);
  waiter.join();
}

// Another process wakes a waiter through its own mapping of the word.
TEST(DoorbellTest, WakesAcrossProcesses) {
  const auto fd = CreateSharedMemory("test", 4096);
  ASSERT_TRUE(fd.ok());
  const auto mapping = SharedMapping::Map(fd->get(), 4096, true);
  ASSERT_TRUE(mapping.ok());
  auto* word = reinterpret_cast<std::atomic<uint32_t>*>(mapping->data());
  const pid_t child = ::fork();
  if (child == 0) {
    const auto mine = SharedMapping::Map(fd->get(), 4096, true);
    if (!mine.ok()) ::_exit(1);
    auto* same_word = reinterpret_cast<std::atomic<uint32_t>*>(mine->data());
    same_word->store(5);
    FutexWake(same_word, 1, 1);
    ::_exit(0);
  }
  while (word->load() == 0) {
    ASSERT_TRUE(FutexWait(word, 0, 1, 10'000'000'000)) << "no wake in 10 s";
  }
  EXPECT_EQ(word->load(), 5u);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace sluice::os
