// SPDX-License-Identifier: Apache-2.0
//
// Programs that share resources through libsluice: turns, deaths, watches, the daemon's end.
#include <signal.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "broker/event_loop.h"
#include "tests/unit/resources/raw_client.h"

namespace sluice {
namespace {

class SharingTest : public ResourceTest {};

uint64_t Checksum(const uint8_t* bytes, size_t size) {
  uint64_t sum = 1469598103934665603u;
  for (size_t i = 0; i < size; ++i) sum = (sum ^ bytes[i]) * 1099511628211u;
  return sum;
}

// What one connection writes in its turn, another reads in its own, frame after frame.
TEST_F(SharingTest, FramesArriveWhole) {
  BrokerProcess broker(directory_, {});
  Client producer(broker);
  Client consumer(broker);
  constexpr size_t kSize = 64 * 1024;
  sluice_capability read, write;
  producer.MakeBuffer(kSize, &read, &write);
  sluice_handle out = producer.Export(write, SLUICE_WRITE);
  void* to = nullptr;
  void* from = nullptr;
  ASSERT_EQ(sluice_map(&out, &to), SLUICE_OK);
  sluice_handle in = consumer.Export(read, SLUICE_READ);
  ASSERT_EQ(sluice_map(&in, &from), SLUICE_OK);
  for (uint64_t frame = 1; frame <= 100; ++frame) {
    sluice_hold hold;
    ASSERT_EQ(sluice_acquire(producer.get(), &write, SLUICE_WRITE, 1000, &hold), SLUICE_OK);
    std::memset(to, static_cast<int>(frame), kSize);
    const uint64_t sum = Checksum(static_cast<uint8_t*>(to), kSize);
    ASSERT_EQ(sluice_release(producer.get(), &hold, 0), SLUICE_OK);
    ASSERT_EQ(sluice_acquire(consumer.get(), &read, SLUICE_READ, 1000, &hold), SLUICE_OK);
    EXPECT_EQ(hold.generation, frame);
    EXPECT_EQ(hold.indeterminate, 0u);
    EXPECT_EQ(Checksum(static_cast<uint8_t*>(from), kSize), sum);
    ASSERT_EQ(sluice_release(consumer.get(), &hold, 0), SLUICE_OK);
  }
  sluice_unmap(to, kSize);
  sluice_unmap(from, kSize);
  sluice_handle_close(&out);
  sluice_handle_close(&in);
}

// A writer that is killed while it writes releases its hold, and the next reader is told.
TEST_F(SharingTest, KilledWriterLeavesIndeterminateContents) {
  BrokerProcess broker(directory_, {});
  Client client(broker);
  sluice_capability read, write;
  client.MakeBuffer(4096, &read, &write);
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  Forked writer([&] {
    sluice_connection* own = nullptr;
    sluice_hold hold;
    const std::string endpoint = "unix:" + broker.socket();
    const bool holds = sluice_connect(endpoint.c_str(), &own) == SLUICE_OK &&
                       sluice_acquire(own, &write, SLUICE_WRITE, 1000, &hold) == SLUICE_OK;
    const char text = holds ? 'y' : 'n';
    if (::write(ready[1], &text, 1) != 1) return 1;
    ::pause();
    return 0;
  });
  char text = 0;
  ASSERT_EQ(::read(ready[0], &text, 1), 1);
  ASSERT_EQ(text, 'y');
  sluice_hold hold;
  EXPECT_EQ(sluice_acquire(client.get(), &read, SLUICE_READ, 50, &hold), SLUICE_TIMED_OUT);
  writer.Kill();
  ASSERT_EQ(sluice_acquire(client.get(), &read, SLUICE_READ, 5000, &hold), SLUICE_OK)
      << sluice_error_text();
  EXPECT_EQ(hold.indeterminate, 1u);
  EXPECT_EQ(sluice_release(client.get(), &hold, 0), SLUICE_OK);
  ASSERT_EQ(sluice_acquire(client.get(), &write, SLUICE_WRITE, 1000, &hold), SLUICE_OK);
  EXPECT_EQ(hold.indeterminate, 1u);
  EXPECT_EQ(sluice_release(client.get(), &hold, 0), SLUICE_OK);
  ASSERT_EQ(sluice_acquire(client.get(), &read, SLUICE_READ, 1000, &hold), SLUICE_OK);
  EXPECT_EQ(hold.indeterminate, 0u);
  ::close(ready[0]);
  ::close(ready[1]);
}

// A resource outlives its maker while another connection has used it, and ends with the last.
TEST_F(SharingTest, LivesAsLongAsItsUsers) {
  BrokerProcess broker(directory_, {});
  Client maker(broker);
  Client user(broker);
  sluice_capability read, write;
  maker.MakeBuffer(4096, &read, &write);
  sluice_description description = {};
  description.struct_size = sizeof(description);
  ASSERT_EQ(sluice_describe(user.get(), &read, &description), SLUICE_OK);
  EXPECT_EQ(description.shape.size_bytes, 4096u);
  EXPECT_STREQ(description.label, "test");
  maker.Disconnect();
  EXPECT_EQ(sluice_describe(user.get(), &read, &description), SLUICE_OK);
  user.Disconnect();
  Client late(broker);
  EXPECT_TRUE(Becomes([&] {
    return sluice_describe(late.get(), &read, &description) == SLUICE_PERMISSION_DENIED;
  }));
}

// Destroying ends waits with the code that says so, from another thread and connection.
TEST_F(SharingTest, DestroyEndsWaits) {
  BrokerProcess broker(directory_, {});
  Client holder(broker);
  Client waiter(broker);
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
TEST_F(SharingTest, WatchTellsNews) {
  BrokerProcess broker(directory_, {});
  Client writer(broker);
  Client watcher(broker);
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
  ASSERT_EQ(sluice_watch_open(watcher.get(), &read, &wrong), SLUICE_OK);
  EXPECT_EQ(sluice_watch_next(wrong, 5000, &state), SLUICE_PERMISSION_DENIED);
  sluice_watch_close(wrong);
}

// When the daemon is killed, whatever waits returns at once, later calls too, and mappings stay.
TEST_F(SharingTest, DaemonsDeathIsAnError) {
  BrokerProcess broker(directory_, {});
  Client client(broker);
  Client waiter(broker);
  sluice_capability read, write;
  client.MakeBuffer(4096, &read, &write);
  sluice_handle handle = client.Export(write, SLUICE_WRITE);
  void* memory = nullptr;
  ASSERT_EQ(sluice_map(&handle, &memory), SLUICE_OK);
  sluice_hold hold;
  ASSERT_EQ(sluice_acquire(client.get(), &write, SLUICE_WRITE, 0, &hold), SLUICE_OK);
  sluice_watch* watch = nullptr;
  ASSERT_EQ(sluice_watch_open(waiter.get(), &read, &watch), SLUICE_OK);
  sluice_state state;
  ASSERT_EQ(sluice_watch_next(watch, 5000, &state), SLUICE_OK);
  sluice_status told = SLUICE_OK;
  std::thread waits([&] {
    sluice_hold none;
    told = sluice_acquire(waiter.get(), &read, SLUICE_READ, 60'000, &none);
  });
  ASSERT_EQ(sluice_watch_next(watch, 5000, &state), SLUICE_OK);  // The acquire has come to wait.
  const int64_t before_ms = MonotonicMs();
  broker.Signal(SIGKILL);
  waits.join();
  EXPECT_EQ(told, SLUICE_LOST);
  while (sluice_watch_next(watch, 5000, &state) == SLUICE_OK) {
  }
  EXPECT_EQ(sluice_watch_next(watch, 5000, &state), SLUICE_LOST);
  EXPECT_EQ(sluice_release(client.get(), &hold, 0), SLUICE_LOST);
  EXPECT_EQ(sluice_acquire(client.get(), &write, SLUICE_WRITE, 60'000, &hold), SLUICE_LOST);
  EXPECT_LT(MonotonicMs() - before_ms, 5'000);
  static_cast<uint8_t*>(memory)[4095] = 7;
  sluice_unmap(memory, 4096);
  sluice_handle_close(&handle);
  sluice_watch_close(watch);
  sluice_connection* none = nullptr;
  const std::string endpoint = "unix:" + broker.socket();
  EXPECT_EQ(sluice_connect(endpoint.c_str(), &none), SLUICE_NO_DAEMON);
}

// A daemon that stops as told ends its connections and does not wait for them.
TEST_F(SharingTest, StoppingDoesNotHang) {
  BrokerProcess broker(directory_, {});
  Client client(broker);
  sluice_capability read, write;
  client.MakeBuffer(4096, &read, &write);
  sluice_hold hold;
  ASSERT_EQ(sluice_acquire(client.get(), &write, SLUICE_WRITE, 0, &hold), SLUICE_OK);
  sluice_watch* watch = nullptr;
  ASSERT_EQ(sluice_watch_open(client.get(), &read, &watch), SLUICE_OK);
  sluice_state state;
  ASSERT_EQ(sluice_watch_next(watch, 5000, &state), SLUICE_OK);
  sluice_status told = SLUICE_OK;
  std::thread waits([&] {
    sluice_hold none;
    told = sluice_acquire(client.get(), &read, SLUICE_READ, 60'000, &none);
  });
  ASSERT_EQ(sluice_watch_next(watch, 5000, &state), SLUICE_OK);
  broker.Signal(SIGTERM);
  EXPECT_EQ(broker.WaitForExit().code, 0);
  waits.join();
  EXPECT_EQ(told, SLUICE_LOST);
  sluice_watch_close(watch);
}

// Calls in a forked child fail with their reason, and leave the parent's connection as it is.
TEST_F(SharingTest, ForkedChildIsTold) {
  BrokerProcess broker(directory_, {});
  Client client(broker);
  sluice_capability read, write;
  client.MakeBuffer(4096, &read, &write);
  Forked child([&] {
    sluice_hold hold;
    return sluice_acquire(client.get(), &read, SLUICE_READ, 0, &hold) == SLUICE_LOST ? 0 : 1;
  });
  EXPECT_EQ(child.Wait(), 0);
  sluice_hold hold;
  EXPECT_EQ(sluice_acquire(client.get(), &read, SLUICE_READ, 0, &hold), SLUICE_OK);
}

// Many threads of several connections take turns at one buffer without a lost or torn write.
TEST_F(SharingTest, ThreadsTakeTurns) {
  BrokerProcess broker(directory_, {});
  Client maker(broker);
  sluice_capability read, write;
  maker.MakeBuffer(4096, &read, &write, SLUICE_TRUST_READERS);
  sluice_handle handle = maker.Export(write, SLUICE_WRITE);
  void* memory = nullptr;
  ASSERT_EQ(sluice_map(&handle, &memory), SLUICE_OK);
  sluice_handle_close(&handle);
  auto* numbers = static_cast<volatile uint64_t*>(memory);
  constexpr int kThreads = 6;
  constexpr int kRounds = 50;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      Client own(broker);
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

}  // namespace
}  // namespace sluice
