// SPDX-License-Identifier: Apache-2.0
//
// An allocator, which carries drivers and so is not trusted, that lies to the broker: whoever asked
// gets an error, the next one gets memory, and the broker is as it was before.
#include "tests/unit/resources/lying_allocator.h"

#include <unistd.h>

#include <chrono>
#include <cstring>

#include "tests/unit/resources/raw_client.h"

namespace sluice::broker {
namespace {

class LyingAllocatorTest : public ResourceTest, public testing::WithParamInterface<AllocatorLie> {};

class TextureTest : public ResourceTest {};

class VulkanTest : public ResourceTest {};

class AllocatorOutputTest : public ResourceTest {};

// True once the daemon makes memory: it waits a moment before it replaces an allocator that ended
// as soon as it began.
bool MakesMemory(const Client& client) {
  const sluice_create_info info = BufferInfo(static_cast<uint64_t>(AllocatorLie::kNone));
  return Becomes([&] {
    sluice_capability read, write;
    return sluice_create(client.get(), &info, &read, &write) == SLUICE_OK &&
           sluice_destroy(client.get(), &write) == SLUICE_OK;
  });
}

// No lie makes a resource of what is no memory, costs the broker a descriptor, or stops it, if only
// for a while.
TEST_P(LyingAllocatorTest, IsNotBelieved) {
  BrokerProcess broker(directory_, {});
  Client client(broker.endpoint());
  ASSERT_TRUE(MakesMemory(client)) << sluice_error_text();
  const int before = broker.CountOpenDescriptors();
  sluice_create_info info = BufferInfo(static_cast<uint64_t>(GetParam()));
  const bool of_vulkan =
      GetParam() >= AllocatorLie::kVulkanPastEnd && GetParam() <= AllocatorLie::kVulkanUnsealed;
  if (of_vulkan) info.backing = SLUICE_BACKING_VULKAN;
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 3; ++i) {
    sluice_capability read, write;
    const sluice_status made = sluice_create(client.get(), &info, &read, &write);
    // The first of two like answers is a good one.
    if (GetParam() == AllocatorLie::kTwice && made == SLUICE_OK) {
      EXPECT_EQ(sluice_destroy(client.get(), &write), SLUICE_OK);
    } else {
      EXPECT_NE(made, SLUICE_OK);
      // Which would say that the connection, or the resource, is at its end.
      EXPECT_NE(made, SLUICE_LOST) << sluice_error_text();
      EXPECT_NE(made, SLUICE_DESTROYED) << sluice_error_text();
    }
    EXPECT_TRUE(MakesMemory(client)) << sluice_error_text() << "\n" << broker.Log();
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2 * kLingerS));
  EXPECT_TRUE(SettlesAt(broker, before)) << broker.CountOpenDescriptors() << " were " << before;
}

// Its output is told as its own, not beside the broker's lines.
TEST_F(AllocatorOutputTest, IsToldAsTheAllocators) {
  BrokerProcess broker(directory_, {});
  Client client(broker.endpoint());
  const sluice_create_info info = BufferInfo(static_cast<uint64_t>(AllocatorLie::kForgesLog));
  sluice_capability read, write;
  ASSERT_EQ(sluice_create(client.get(), &info, &read, &write), SLUICE_OK) << sluice_error_text();
  EXPECT_TRUE(
      broker.WaitForLog("Z info allocator msg=output task=resources "
                        "text=\"2026-11-22T00:00:00.000Z error broker msg=forged\""))
      << broker.Log();
  EXPECT_EQ(broker.Log().find("\n2026-11-22T00:00:00.000Z"), std::string::npos) << broker.Log();
}

// Direct3D's textures, with a stand-in for the allocator on Windows: the shape arrives there whole,
// and both handles at the client; one that comes without its fence is none.
TEST_F(TextureTest, TexturesComeWithTheirFence) {
  BrokerProcess broker(directory_, {});
  Client client(broker.endpoint());
  sluice_create_info info = BufferInfo(0, SLUICE_TRUST_READERS);
  info.backing = SLUICE_BACKING_D3D11;
  info.shape.drm_fourcc = 0x34324241;  // 'AB24', CL_RGBA and CL_UNORM_INT8
  info.shape.width = 64;
  info.shape.height = 32;
  info.shape.array_layers = 2;
  sluice_capability read, write;
  ASSERT_EQ(sluice_create(client.get(), &info, &read, &write), SLUICE_OK) << sluice_error_text();
  sluice_handle handle = client.Export(read, SLUICE_READ);
  EXPECT_EQ(handle.fd_count, 2u);
  EXPECT_EQ(handle.backing, uint32_t{SLUICE_BACKING_D3D11});
  EXPECT_EQ(handle.device_uuid[0], 7);
  void* mapped = nullptr;
  EXPECT_EQ(sluice_map(&handle, &mapped), SLUICE_UNSUPPORTED);
  sluice_handle_close(&handle);
  info.shape.width = 1;
  EXPECT_EQ(sluice_create(client.get(), &info, &read, &write), SLUICE_FAILED);
  info.shape.width = 2;  // The allocator's own account of its trouble reaches the log.
  EXPECT_EQ(sluice_create(client.get(), &info, &read, &write), SLUICE_INVALID_ARGUMENT);
  info.shape.width = 64;
  info.flags = 0;
  ASSERT_EQ(sluice_create(client.get(), &info, &read, &write), SLUICE_OK);
  EXPECT_EQ(sluice_export(client.get(), &read, SLUICE_READ, &handle), SLUICE_UNSUPPORTED);
}

// The allocator's words about Vulkan's memory arrive: whose it is, and whether and where it can be
// mapped.
TEST_F(VulkanTest, MemorySaysWhereItIs) {
  BrokerProcess broker(directory_, {});
  Client client(broker.endpoint());
  for (const uint64_t bytes : {uint64_t{8192}, uint64_t{8191}}) {
    sluice_create_info info = BufferInfo(bytes, SLUICE_TRUST_READERS);
    info.backing = SLUICE_BACKING_VULKAN;
    sluice_capability read, write;
    ASSERT_EQ(sluice_create(client.get(), &info, &read, &write), SLUICE_OK) << sluice_error_text();
    sluice_handle out = client.Export(write, SLUICE_WRITE);
    sluice_handle in = client.Export(read, SLUICE_READ);
    EXPECT_EQ(in.device_uuid[15], 3);
    uint8_t driver_uuid[16];
    std::memcpy(driver_uuid, &in.ints[4], sizeof(driver_uuid));
    EXPECT_EQ(driver_uuid[0], 4);
    EXPECT_EQ(driver_uuid[15], 4);
    void* to = nullptr;
    void* from = nullptr;
    if (bytes % 2 == 0) {
      ASSERT_EQ(sluice_map(&out, &to), SLUICE_OK) << sluice_error_text();
      ASSERT_EQ(sluice_map(&in, &from), SLUICE_OK);
      static_cast<uint8_t*>(to)[bytes - 1] = 42;
      EXPECT_EQ(static_cast<uint8_t*>(from)[bytes - 1], 42);
      uint8_t seen = 0;
      EXPECT_EQ(::pread(in.fds[0], &seen, 1, static_cast<off_t>(64 + bytes - 1)), 1);
      EXPECT_EQ(seen, 42);
      sluice_unmap(to, bytes);
      sluice_unmap(from, bytes);
    } else {
      EXPECT_EQ(sluice_map(&in, &from), SLUICE_UNSUPPORTED);
    }
    sluice_handle_close(&out);
    sluice_handle_close(&in);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Lies, LyingAllocatorTest,
    testing::Values(AllocatorLie::kNoDescriptor, AllocatorLie::kWrongCount,
                    AllocatorLie::kMemoryWithAnError, AllocatorLie::kTooManyDescriptors,
                    AllocatorLie::kOtherRequest, AllocatorLie::kEndlessMessage,
                    AllocatorLie::kShortMessage, AllocatorLie::kTwice, AllocatorLie::kEnds,
                    AllocatorLie::kPipe, AllocatorLie::kSmaller, AllocatorLie::kUnsealed,
                    AllocatorLie::kLingers, AllocatorLie::kVulkanPastEnd,
                    AllocatorLie::kVulkanWraps, AllocatorLie::kVulkanUnsealed,
                    AllocatorLie::kVulkanLingers, AllocatorLie::kVulkanUnasked));

}  // namespace
}  // namespace sluice::broker
