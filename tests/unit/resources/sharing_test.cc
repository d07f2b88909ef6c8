// SPDX-License-Identifier: Apache-2.0
//
// Programs that share resources through libsluice: frames, deaths, forks, the daemon's end.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "broker/event_loop.h"
#include "tests/unit/resources/raw_client.h"

namespace sluice::broker {
namespace {

class SharingTest : public ResourceTest {};

uint64_t Checksum(const uint8_t* bytes, size_t size) {
  uint64_t sum = 1469598103934665603u;
  for (size_t i = 0; i < size; ++i) sum = (sum ^ bytes[i]) * 1099511628211u;
  return sum;
}

// Another connection reads in its turn what one writes in its own, frame after frame.
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

// A daemon that does not answer is told apart from a turn that does not come; what was given up
// then holds nothing, and the connection goes on.
TEST_F(SharingTest, ADaemonThatHangsIsTimedOut) {
  BrokerProcess broker(directory_, {});
  Client client(broker.endpoint());
  sluice_capability read, write;
  client.MakeBuffer(4096, &read, &write);
  sluice_hold hold;
  broker.Signal(SIGSTOP);
  EXPECT_EQ(sluice_acquire(client.get(), &write, SLUICE_WRITE, 500, &hold), SLUICE_TIMED_OUT);
  EXPECT_STREQ(sluice_error_text(), "the daemon has not answered in 5500 ms");
  broker.Signal(SIGCONT);
  sluice_description description = {};
  description.struct_size = sizeof(description);
  EXPECT_TRUE(Becomes([&] {
    return sluice_describe(client.get(), &read, &description) == SLUICE_OK &&
           description.state.writer == 0 && description.state.waiting == 0;
  }));
  EXPECT_EQ(sluice_acquire(client.get(), &write, SLUICE_WRITE, 500, &hold), SLUICE_OK);
  EXPECT_EQ(sluice_release(client.get(), &hold, 0), SLUICE_OK);
}

// No endpoint, or an empty one, is the environment's; a failure leaves no pointer behind.
TEST_F(SharingTest, EmptyEndpointIsTheEnvironments) {
  BrokerProcess broker(directory_, {});
  ASSERT_EQ(::setenv("SLUICE_ENDPOINT", broker.endpoint().c_str(), 1), 0);
  for (const char* endpoint : {static_cast<const char*>(nullptr), ""}) {
    sluice_connection* connection = nullptr;
    EXPECT_EQ(sluice_connect(endpoint, &connection), SLUICE_OK) << sluice_error_text();
    sluice_disconnect(connection);
  }
  ::unsetenv("SLUICE_ENDPOINT");
  const std::string nobody = broker.endpoint() + ".none";
  for (const char* endpoint : {"localhost:7000", nobody.c_str()}) {
    auto* none = reinterpret_cast<sluice_connection*>(this);
    EXPECT_NE(sluice_connect(endpoint, &none), SLUICE_OK);
    EXPECT_EQ(none, nullptr);
  }
  Client client(broker.endpoint());
  const sluice_capability guess = {};
  auto* watch = reinterpret_cast<sluice_watch*>(this);
  EXPECT_EQ(sluice_watch_open(client.get(), &guess, &watch), SLUICE_PERMISSION_DENIED);
  EXPECT_EQ(watch, nullptr);
}

// An endpoint that is none here is told as what it is: the caller's argument, or the environment's;
// and another machine's is not offered.
TEST_F(SharingTest, EndpointsOfThisMachineOnly) {
  const auto refusal = [](const char* argument) {
    sluice_connection* none = nullptr;
    EXPECT_EQ(sluice_connect(argument, &none), SLUICE_INVALID_ARGUMENT);
    return std::string(sluice_error_text());
  };
  const std::string rest =
      " is no endpoint of the form unix:/ABSOLUTE/PATH: resources are shared on one machine";
  for (const char* endpoint : {"unix:relative", "localhost:7000"}) {
    EXPECT_EQ(refusal(endpoint), std::string("\"") + endpoint + "\"" + rest);
    ASSERT_EQ(::setenv("SLUICE_ENDPOINT", endpoint, 1), 0);
    EXPECT_EQ(refusal(nullptr), std::string("SLUICE_ENDPOINT: \"") + endpoint + "\"" + rest);
    ::unsetenv("SLUICE_ENDPOINT");
  }
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

// A child of a process that uses gRPC, with a connection of its own. 0: all of it worked.
int UseOwnConnection(const std::string& endpoint, const sluice_capability& read,
                     const sluice_capability& write) {
  ::alarm(kTestTimeoutMs / 1000);  // A hang is a failure.
  sluice_connection* own = nullptr;
  if (sluice_connect(endpoint.c_str(), &own) != SLUICE_OK) return 1;
  sluice_hold hold;
  if (sluice_acquire(own, &write, SLUICE_WRITE, 5000, &hold) != SLUICE_OK) return 2;
  sluice_watch* watch = nullptr;
  sluice_state state;
  if (sluice_watch_open(own, &read, &watch) != SLUICE_OK) return 3;
  if (sluice_watch_next(watch, 5000, &state) != SLUICE_OK || state.writer != 1) return 4;
  if (sluice_watch_next(watch, 10, &state) != SLUICE_TIMED_OUT) return 5;
  sluice_handle handle = {};
  handle.struct_size = sizeof(handle);
  if (sluice_export(own, &read, SLUICE_WRITE, &handle) != SLUICE_PERMISSION_DENIED) return 6;
  if (sluice_error_text()[0] == '\0') return 7;
  if (sluice_export(own, &write, SLUICE_WRITE, &handle) != SLUICE_OK) return 8;
  sluice_handle_close(&handle);
  if (sluice_release(own, &hold, 0) != SLUICE_OK) return 9;
  while (state.writer == 1) {
    if (sluice_watch_next(watch, 5000, &state) != SLUICE_OK) return 10;
  }
  sluice_capability mine;
  const sluice_create_info info = BufferInfo(4096);
  if (sluice_create(own, &info, nullptr, &mine) != SLUICE_OK) return 11;
  sluice_watch* end = nullptr;
  if (sluice_watch_open(own, &mine, &end) != SLUICE_OK) return 12;
  if (sluice_destroy(own, &mine) != SLUICE_OK) return 13;
  do {
    const sluice_status status = sluice_watch_next(end, 5000, &state);
    if (status != SLUICE_OK) return 20 + status;
  } while (state.destroyed == 0);
  if (sluice_watch_next(end, 5000, &state) != SLUICE_DESTROYED) return 15;
  sluice_watch_close(end);
  sluice_watch_close(watch);
  sluice_disconnect(own);
  return 0;
}

// A child of a process with a connection and a watch makes a connection of its own, which works,
// and the parent's go on.
TEST_F(SharingTest, ForkedChildConnectsForItself) {
  BrokerProcess broker(directory_, {});
  const std::string endpoint = broker.endpoint();
  Client client(broker.endpoint());
  sluice_capability read, write;
  client.MakeBuffer(4096, &read, &write);
  sluice_watch* watch = nullptr;
  ASSERT_EQ(sluice_watch_open(client.get(), &read, &watch), SLUICE_OK);
  sluice_state state;
  ASSERT_EQ(sluice_watch_next(watch, 5000, &state), SLUICE_OK);
  for (uint64_t i = 1; i <= 5; ++i) {
    Forked child([&] {
      if (sluice_watch_next(watch, 60'000, &state) != SLUICE_LOST) return 100;
      sluice_watch_close(watch);
      sluice_disconnect(client.get());
      return UseOwnConnection(endpoint, read, write);
    });
    EXPECT_EQ(child.Wait(), 0);
    while (state.generation < i) {
      ASSERT_EQ(sluice_watch_next(watch, 5000, &state), SLUICE_OK) << sluice_error_text();
    }
    sluice_hold hold;
    ASSERT_EQ(sluice_acquire(client.get(), &read, SLUICE_READ, 5000, &hold), SLUICE_OK);
    EXPECT_EQ(sluice_release(client.get(), &hold, 0), SLUICE_OK);
  }
  sluice_watch_close(watch);
}

// The tickets that a child holds through a process of its own end with the child.
TEST_F(SharingTest, ForkedChildsHoldEndsWithIt) {
  BrokerProcess broker(directory_, {});
  const std::string endpoint = broker.endpoint();
  Client client(broker.endpoint());
  sluice_capability read, write;
  client.MakeBuffer(4096, &read, &write);
  Forked child([&] {
    sluice_connection* own = nullptr;
    sluice_hold hold;
    if (sluice_connect(endpoint.c_str(), &own) != SLUICE_OK) return 1;
    return sluice_acquire(own, &write, SLUICE_WRITE, 5000, &hold) == SLUICE_OK ? 0 : 2;
  });
  EXPECT_EQ(child.Wait(), 0);
  sluice_hold hold;
  ASSERT_EQ(sluice_acquire(client.get(), &write, SLUICE_WRITE, 10'000, &hold), SLUICE_OK);
  EXPECT_EQ(hold.indeterminate, 1u);
}

// A refused export leaves a handle without descriptors, whatever was in it; closing that, or one
// that was never filled, closes nobody's.
TEST_F(SharingTest, RefusedExportsCloseNothing) {
  BrokerProcess broker(directory_, {});
  Client client(broker.endpoint());
  const os::UniqueFd standard_input(::dup(0));
  ASSERT_EQ(::dup2(MakeMemfd(1, 0).get(), 0), 0);
  sluice_handle handle = {};
  handle.struct_size = sizeof(handle);
  sluice_handle_close(&handle);
  EXPECT_GE(::fcntl(0, F_GETFD), 0);
  handle = {};
  handle.struct_size = sizeof(handle);
  handle.fd_count = 1;
  const sluice_capability none = {};
  EXPECT_EQ(sluice_export(client.get(), &none, SLUICE_WRITE, &handle), SLUICE_PERMISSION_DENIED);
  EXPECT_EQ(handle.fd_count, 0u);
  EXPECT_EQ(handle.fds[0], -1);
  void* address = nullptr;
  EXPECT_EQ(sluice_map(&handle, &address), SLUICE_INVALID_ARGUMENT);
  sluice_handle_close(&handle);
  EXPECT_GE(::fcntl(0, F_GETFD), 0);
  if (standard_input.valid()) ::dup2(standard_input.get(), 0);
}

// A resource whose capabilities nobody is given is not made: nobody could use or destroy it.
TEST_F(SharingTest, SomeCapabilityIsWanted) {
  BrokerProcess broker(directory_, {});
  Client client(broker.endpoint());
  const sluice_create_info info = BufferInfo(4096);
  EXPECT_EQ(sluice_create(client.get(), &info, nullptr, nullptr), SLUICE_INVALID_ARGUMENT);
  EXPECT_STREQ(sluice_error_text(), "a null argument");
  EXPECT_EQ(sluice_import(client.get(), &info, 0, nullptr, nullptr), SLUICE_INVALID_ARGUMENT);
  EXPECT_STREQ(sluice_error_text(), "a null argument");
}

// A label that is not UTF-8 is refused with its reason, and nothing is written to stderr.
TEST_F(SharingTest, LabelsAreUtf8) {
  BrokerProcess broker(directory_, {});
  Client client(broker.endpoint());
  sluice_create_info info = BufferInfo(1);
  sluice_capability write;
  testing::internal::CaptureStderr();
  for (const char* label : {"\xff\xfe", "\x80", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80",
                            "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80", "cut \xe2\x82"}) {
    info.label = label;
    EXPECT_EQ(sluice_create(client.get(), &info, nullptr, &write), SLUICE_INVALID_ARGUMENT);
    EXPECT_STREQ(sluice_error_text(), "the label is not UTF-8");
  }
  for (const char* label : {"", "plain", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x98\x80"}) {
    info.label = label;
    EXPECT_EQ(sluice_create(client.get(), &info, nullptr, &write), SLUICE_OK)
        << sluice_error_text();
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace sluice::broker
