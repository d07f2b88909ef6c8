// SPDX-License-Identifier: Apache-2.0
//
// For tests of daemon-owned resources on every system: a connection of libsluice.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>

#include "sluice/sluice.h"

namespace sluice::broker {

// Of the one daemon of tests that do it no harm.
const std::string& SharedEndpoint();

// A connection of libsluice, ended with the test.
class Client {
 public:
  explicit Client(const std::string& endpoint = SharedEndpoint());
  ~Client() { Disconnect(); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  sluice_connection* get() const { return connection_; }
  void Disconnect();

  // A buffer of `size` bytes; fails the test if that fails.
  void MakeBuffer(uint64_t size, sluice_capability* read, sluice_capability* write,
                  uint32_t flags = 0);
  sluice_handle Export(const sluice_capability& capability, sluice_access access);
  uint8_t* Map(const sluice_capability& capability, sluice_access access);

 private:
  sluice_connection* connection_ = nullptr;
};

sluice_create_info BufferInfo(uint64_t size, uint32_t flags = 0);

// Until `condition`, or the test's time limit.
bool Becomes(const std::function<bool()>& condition);

}  // namespace sluice::broker
