// SPDX-License-Identifier: Apache-2.0
//
// Programs that share resources through libsluice: frames, deaths, forks, the daemon's end.
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
  Client producer(broker.endpoint());
  Client consumer(broker.endpoint());
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
  Client client(broker.endpoint());
  sluice_capability read, write;
  client.MakeBuffer(4096, &read, &write);
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  Forked writer([&] {
    sluice_connection* own = nullptr;
    sluice_hold hold;
    const std::string endpoint = broker.endpoint();
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

// When the daemon is killed, whatever waits returns at once, later calls too, and mappings stay.
TEST_F(SharingTest, DaemonsDeathIsAnError) {
  BrokerProcess broker(directory_, {});
  Client client(broker.endpoint());
  Client waiter(broker.endpoint());
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
  const std::string endpoint = broker.endpoint();
  EXPECT_EQ(sluice_connect(endpoint.c_str(), &none), SLUICE_NO_DAEMON);
}

// A daemon that stops as told ends its connections and does not wait for them.
TEST_F(SharingTest, StoppingDoesNotHang) {
  BrokerProcess broker(directory_, {});
  Client client(broker.endpoint());
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
  Client client(broker.endpoint());
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

}  // namespace
}  // namespace sluice
