// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/resources/client.h"

#include <chrono>
#include <thread>
#include <utility>

namespace sluice::broker {
namespace {

constexpr std::chrono::seconds kPatience(30);
constexpr std::chrono::milliseconds kBetweenLooks(1);

}  // namespace

Client::Client(const std::string& endpoint) {
  EXPECT_EQ(sluice_connect(endpoint.c_str(), &connection_), SLUICE_OK)
      << endpoint << ": " << sluice_error_text();
}

void Client::Disconnect() { sluice_disconnect(std::exchange(connection_, nullptr)); }

void Client::MakeBuffer(uint64_t size, sluice_capability* read, sluice_capability* write,
                        uint32_t flags) {
  const sluice_create_info info = BufferInfo(size, flags);
  ASSERT_EQ(sluice_create(connection_, &info, read, write), SLUICE_OK) << sluice_error_text();
}

sluice_handle Client::Export(const sluice_capability& capability, sluice_access access) {
  sluice_handle handle = {};
  handle.struct_size = sizeof(handle);
  EXPECT_EQ(sluice_export(connection_, &capability, access, &handle), SLUICE_OK)
      << sluice_error_text();
  return handle;
}

uint8_t* Client::Map(const sluice_capability& capability, sluice_access access) {
  sluice_handle handle = Export(capability, access);
  void* mapped = nullptr;
  EXPECT_EQ(sluice_map(&handle, &mapped), SLUICE_OK) << sluice_error_text();
  sluice_handle_close(&handle);
  return static_cast<uint8_t*>(mapped);
}

sluice_create_info BufferInfo(uint64_t size, uint32_t flags) {
  sluice_create_info info = {};
  info.struct_size = sizeof(info);
  info.shape.size_bytes = size;
  info.flags = flags;
  info.label = "test";
  return info;
}

bool Becomes(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(kBetweenLooks);
  }
  return true;
}

}  // namespace sluice::broker
