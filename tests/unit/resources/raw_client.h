// SPDX-License-Identifier: Apache-2.0
//
// For tests of daemon-owned resources: a daemon, clients of libsluice, and a client that speaks to
// the service by hand and does what libsluice would not.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "broker/os/scoped_handle.h"
#include "broker/resource_messages.h"
#include "proto/resources.grpc.pb.h"
#include "sluice/sluice.h"
#include "tests/unit/broker/broker_process.h"

namespace sluice {

// A connection of libsluice, ended with the test.
class Client {
 public:
  explicit Client(const BrokerProcess& broker);
  ~Client() { Disconnect(); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  sluice_connection* get() const { return connection_; }
  void Disconnect();

  // A buffer of `size` bytes; fails the test if that fails.
  void MakeBuffer(uint64_t size, sluice_capability* read, sluice_capability* write,
                  uint32_t flags = 0);
  sluice_handle Export(const sluice_capability& capability, sluice_access access);

 private:
  sluice_connection* connection_ = nullptr;
};

sluice_create_info BufferInfo(uint64_t size, uint32_t flags = 0);

// The two descriptors, and a stub on the first unless it is wanted raw.
struct RawClient {
  explicit RawClient(const BrokerProcess& broker, bool with_stub = true);

  std::unique_ptr<TestClient> broker;
  UniqueFd transport;  // Invalid once the stub has it.
  UniqueFd channel;
  std::unique_ptr<v1::Resources::Stub> stub;
};

class ResourceTest : public testing::Test {
 protected:
  // What must hold again after whatever a test did to the daemon.
  static void ExpectServing(const BrokerProcess& broker);
  // How many descriptors a broker has whose allocator runs already, at rest.
  static int Baseline(const BrokerProcess& broker);
  // True once the broker has `count` descriptors open.
  static bool SettlesAt(const BrokerProcess& broker, int count);

  TestDirectory directory_;
};

// Until `condition`, or the test's time limit.
bool Becomes(const std::function<bool()>& condition);

// A memfd of `size` bytes with those seals.
UniqueFd MakeMemfd(uint64_t size, int seals);

// A child process that runs `child` and exits with what it returns; killed and reaped at the end.
class Forked {
 public:
  explicit Forked(const std::function<int()>& child);
  ~Forked() { Kill(); }
  void Kill();
  int Wait();  // Its exit code; -1 if it was killed.

 private:
  pid_t pid_;
};

}  // namespace sluice
