// SPDX-License-Identifier: Apache-2.0
//
// Turns at a resource, watches and lifetimes through libsluice, on every system.
#include <chrono>
#include <thread>
#include <vector>

#include "tests/unit/resources/client.h"

namespace sluice::broker {
namespace {

// A turn that does not come is waited for as long as was said, and not at all with 0.
TEST(TurnsTest, DeadlinesHold) {
  Client holder;
  Client waiter;
  sluice_capability read, write;
  holder.MakeBuffer(4096, &read, &write);
  sluice_hold held, hold;
  ASSERT_EQ(sluice_acquire(holder.get(), &write, SLUICE_WRITE, 0, &held), SLUICE_OK);
  EXPECT_EQ(sluice_acquire(waiter.get(), &read, SLUICE_READ, 0, &hold), SLUICE_TIMED_OUT);
  const auto before = std::chrono::steady_clock::now();
  EXPECT_EQ(sluice_acquire(waiter.get(), &read, SLUICE_READ, 300, &hold), SLUICE_TIMED_OUT);
  EXPECT_GE(std::chrono::steady_clock::now() - before, std::chrono::milliseconds(280));
  // A hold is its connection's: another one's is none, and stays what it is.
  EXPECT_EQ(sluice_release(waiter.get(), &held, 0), SLUICE_NOT_FOUND);
  EXPECT_EQ(sluice_acquire(waiter.get(), &read, SLUICE_READ, 0, &hold), SLUICE_TIMED_OUT);
  EXPECT_EQ(sluice_release(holder.get(), &held, 0), SLUICE_OK);
  EXPECT_EQ(sluice_acquire(waiter.get(), &read, SLUICE_READ, 0, &hold), SLUICE_OK);
}

// A resource outlives its maker while another connection has used it, and ends with the last.
TEST(TurnsTest, LivesAsLongAsItsUsers) {
  Client maker;
  Client user;
  sluice_capability read, write;
  maker.MakeBuffer(4096, &read, &write);
  sluice_description description = {};
  description.struct_size = sizeof(description);
  ASSERT_EQ(sluice_describe(user.get(), &read, &description), SLUICE_OK);
  EXPECT_EQ(description.shape.size_bytes, 4096u);
  EXPECT_EQ(description.backing, uint32_t{SLUICE_BACKING_MEMFD});
  EXPECT_STREQ(description.label, "test");
  maker.Disconnect();
  EXPECT_EQ(sluice_describe(user.get(), &read, &description), SLUICE_OK);
  user.Disconnect();
  Client late;
  EXPECT_TRUE(Becomes([&] {
    return sluice_describe(late.get(), &read, &description) == SLUICE_PERMISSION_DENIED;
  }));
}

// Destroying ends waits with the code that says so, from another thread and connection.
TEST(TurnsTest, DestroyEndsWaits) {
  Client holder;
  Client waiter;
  sluice_capability read, write;
  holder.MakeBuffer(4096, &read, &write);
  sluice_hold hold;
  ASSERT_EQ(sluice_acquire(holder.get(), &write, SLUICE_WRITE, 0, &hold), SLUICE_OK);
  sluice_status told = SLUICE_OK;
  std::thread waits([&] {
    sluice_hold none;
    told = sluice_acquire(waiter.get(), &read, SLUICE_READ, 20'000, &none);
  });
  sluice_description description = {};
  description.struct_size = sizeof(description);
  EXPECT_TRUE(Becomes([&] {
    return sluice_describe(holder.get(), &read, &description) == SLUICE_OK &&
           description.state.waiting == 1;
  }));
  EXPECT_EQ(sluice_destroy(holder.get(), &read), SLUICE_PERMISSION_DENIED);
  EXPECT_EQ(sluice_destroy(holder.get(), &write), SLUICE_OK);
  waits.join();
  EXPECT_EQ(told, SLUICE_DESTROYED);
  EXPECT_EQ(sluice_release(holder.get(), &hold, 0), SLUICE_OK);
  EXPECT_EQ(sluice_release(holder.get(), &hold, 0), SLUICE_NOT_FOUND);
}

// A watch tells the state at once, then news, then the end; between, it times out.
TEST(TurnsTest, WatchTellsNews) {
  Client writer;
  Client watcher;
  sluice_capability read, write;
  writer.MakeBuffer(4096, &read, &write);
  sluice_watch* watch = nullptr;
  ASSERT_EQ(sluice_watch_open(watcher.get(), &read, &watch), SLUICE_OK);
  sluice_state state = {};
  ASSERT_EQ(sluice_watch_next(watch, 5000, &state), SLUICE_OK) << sluice_error_text();
  EXPECT_EQ(state.generation, 0u);
  EXPECT_EQ(sluice_watch_next(watch, 20, &state), SLUICE_TIMED_OUT);
  sluice_hold hold;
  ASSERT_EQ(sluice_acquire(writer.get(), &write, SLUICE_WRITE, 0, &hold), SLUICE_OK);
  ASSERT_EQ(sluice_release(writer.get(), &hold, SLUICE_CONTENTS_INDETERMINATE), SLUICE_OK);
  while (state.generation == 0) ASSERT_EQ(sluice_watch_next(watch, 5000, &state), SLUICE_OK);
  EXPECT_EQ(state.indeterminate, 1);
  ASSERT_EQ(sluice_destroy(writer.get(), &write), SLUICE_OK);
  while (state.destroyed == 0) ASSERT_EQ(sluice_watch_next(watch, 5000, &state), SLUICE_OK);
  EXPECT_EQ(sluice_watch_next(watch, 5000, &state), SLUICE_DESTROYED);
  sluice_watch_close(watch);
  sluice_watch* wrong = nullptr;
  EXPECT_EQ(sluice_watch_open(watcher.get(), &read, &wrong), SLUICE_PERMISSION_DENIED);
  EXPECT_EQ(wrong, nullptr);
}

// More than are told at once: each sees the newest state in the end, also while others are closed.
TEST(TurnsTest, ManyWatchesAllSeeTheNewest) {
  Client writer;
  Client clients[3];
  sluice_capability read, write;
  writer.MakeBuffer(4096, &read, &write);
  std::vector<sluice_watch*> watches;
  for (const Client& client : clients) {
    for (int i = 0; i < 60; ++i) {
      watches.push_back(nullptr);
      ASSERT_EQ(sluice_watch_open(client.get(), &read, &watches.back()), SLUICE_OK)
          << sluice_error_text();
    }
  }
  constexpr uint64_t kTurns = 60;
  for (uint64_t i = 0; i < kTurns; ++i) {
    sluice_hold hold;
    ASSERT_EQ(sluice_acquire(writer.get(), &write, SLUICE_WRITE, 0, &hold), SLUICE_OK);
    ASSERT_EQ(sluice_release(writer.get(), &hold, 0), SLUICE_OK);
    sluice_watch_close(watches.back());
    watches.pop_back();
  }
  for (sluice_watch* watch : watches) {
    sluice_state state = {};
    while (state.generation < kTurns)
      ASSERT_EQ(sluice_watch_next(watch, 20'000, &state), SLUICE_OK) << sluice_error_text();
  }
  ASSERT_EQ(sluice_destroy(writer.get(), &write), SLUICE_OK);
  for (sluice_watch* watch : watches) {
    sluice_state state = {};
    while (state.destroyed == 0)
      ASSERT_EQ(sluice_watch_next(watch, 20'000, &state), SLUICE_OK) << sluice_error_text();
    sluice_watch_close(watch);
  }
}

// Many threads of several connections take turns at one buffer without a lost or torn write.
TEST(TurnsTest, ThreadsTakeTurns) {
  Client maker;
  sluice_capability read, write;
  maker.MakeBuffer(4096, &read, &write);
  uint8_t* memory = maker.Map(write, SLUICE_WRITE);
  ASSERT_NE(memory, nullptr);
  auto* numbers = reinterpret_cast<volatile uint64_t*>(memory);
  constexpr int kThreads = 6;
  constexpr int kRounds = 50;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      Client own;
      for (int i = 0; i < kRounds; ++i) {
        sluice_hold hold;
        const bool writes = (i + t) % 2 == 0;
        ASSERT_EQ(sluice_acquire(own.get(), writes ? &write : &read,
                                 writes ? SLUICE_WRITE : SLUICE_READ, 20'000, &hold),
                  SLUICE_OK);
        EXPECT_EQ(numbers[0], numbers[511]);
        if (writes) {
          numbers[0] = numbers[0] + 1;
          std::this_thread::yield();
          numbers[511] = numbers[511] + 1;
        }
        ASSERT_EQ(sluice_release(own.get(), &hold, 0), SLUICE_OK);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(numbers[0], uint64_t{kThreads} * kRounds / 2);
  sluice_unmap(memory, 4096);
}

// A closed watch does not count: who has all but one of those that are allowed can open and close
// the last without end.
TEST(TurnsTest, ClosedWatchesDoNotCount) {
  Client client;
  sluice_capability read, write;
  client.MakeBuffer(4096, &read, &write);
  constexpr size_t kMostWatches = 64;  // Of a connection, by default.
  std::vector<sluice_watch*> others(kMostWatches - 1);
  for (sluice_watch*& other : others) {
    ASSERT_EQ(sluice_watch_open(client.get(), &read, &other), SLUICE_OK) << sluice_error_text();
  }
  for (int i = 0; i < 500; ++i) {
    sluice_watch* watch = nullptr;
    ASSERT_EQ(sluice_watch_open(client.get(), &read, &watch), SLUICE_OK)
        << i << ": " << sluice_error_text();
    sluice_watch_close(watch);
  }
  for (sluice_watch* other : others) sluice_watch_close(other);
}

}  // namespace
}  // namespace sluice::broker
