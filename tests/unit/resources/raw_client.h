// SPDX-License-Identifier: Apache-2.0
//
// For tests of daemon-owned resources on Linux: a daemon, and a client that speaks to
// the service by hand and does what libsluice would not.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "broker/os/scoped_handle.h"
#include "proto/resource_messages.h"
#include "proto/resources.grpc.pb.h"
#include "tests/unit/broker/broker_process.h"
#include "tests/unit/resources/client.h"

namespace sluice::broker {

// The two descriptors, and a stub on the first unless it is wanted raw.
struct RawClient {
  explicit RawClient(const BrokerProcess& broker, bool with_stub = true);

  std::unique_ptr<TestClient> broker;
  os::UniqueFd transport;  // Invalid once the stub has it.
  os::UniqueFd channel;
  std::unique_ptr<v1::Resources::Stub> stub;
};

class ResourceTest : public testing::Test {
 protected:
  // This must hold again after whatever a test did to the daemon.
  static void ExpectServing(const BrokerProcess& broker);
  // How many descriptors a broker has whose allocator runs already, at rest.
  static int Baseline(const BrokerProcess& broker);
  // True once the broker has `count` descriptors open, or fewer: on a busy machine it may have been
  // slow to close one that Baseline has counted.
  static bool SettlesAt(const BrokerProcess& broker, int count);

  TestDirectory directory_;
};

// A memfd of `size` bytes with those seals.
os::UniqueFd MakeMemfd(uint64_t size, int seals);

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

}  // namespace sluice::broker
