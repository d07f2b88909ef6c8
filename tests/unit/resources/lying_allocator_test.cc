// SPDX-License-Identifier: Apache-2.0
//
// An allocator, which carries drivers and so is not trusted, that lies to the broker: whoever asked
// gets an error, the next one gets memory, and the broker is as it was before.
#include "tests/unit/resources/lying_allocator.h"

#include "tests/unit/resources/raw_client.h"

namespace sluice {
namespace {

class LyingAllocatorTest : public ResourceTest, public testing::WithParamInterface<AllocatorLie> {};

class TextureTest : public ResourceTest {};

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

// No lie makes a resource of what is no memory, costs the broker a descriptor, or stops it.
TEST_P(LyingAllocatorTest, IsNotBelieved) {
  BrokerProcess broker(directory_, {});
  Client client(broker);
  ASSERT_TRUE(MakesMemory(client)) << sluice_error_text();
  const int before = broker.CountOpenDescriptors();
  const sluice_create_info info = BufferInfo(static_cast<uint64_t>(GetParam()));
  for (int i = 0; i < 3; ++i) {
    sluice_capability read, write;
    const sluice_status made = sluice_create(client.get(), &info, &read, &write);
    // The first of two like answers is a good one.
    if (GetParam() == AllocatorLie::kTwice && made == SLUICE_OK) {
      EXPECT_EQ(sluice_destroy(client.get(), &write), SLUICE_OK);
    } else {
      EXPECT_NE(made, SLUICE_OK);
    }
    EXPECT_TRUE(MakesMemory(client)) << sluice_error_text() << "\n" << broker.Log();
  }
  EXPECT_TRUE(SettlesAt(broker, before)) << broker.CountOpenDescriptors() << " were " << before;
}

// Direct3D's textures, with a stand-in for the allocator on Windows: the shape arrives there whole,
// and both handles at the client; one that comes without its fence is none.
TEST_F(TextureTest, TexturesComeWithTheirFence) {
  BrokerProcess broker(directory_, {});
  Client client(broker);
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
  info.shape.width = 2;  // What the allocator says is wrong with it is told as that.
  EXPECT_EQ(sluice_create(client.get(), &info, &read, &write), SLUICE_INVALID_ARGUMENT);
  info.shape.width = 64;
  info.flags = 0;
  ASSERT_EQ(sluice_create(client.get(), &info, &read, &write), SLUICE_OK);
  EXPECT_EQ(sluice_export(client.get(), &read, SLUICE_READ, &handle), SLUICE_UNSUPPORTED);
}

INSTANTIATE_TEST_SUITE_P(Lies, LyingAllocatorTest,
                         testing::Values(AllocatorLie::kNoDescriptor, AllocatorLie::kWrongCount,
                                         AllocatorLie::kMemoryWithAnError,
                                         AllocatorLie::kTooManyDescriptors,
                                         AllocatorLie::kOtherRequest, AllocatorLie::kEndlessMessage,
                                         AllocatorLie::kShortMessage, AllocatorLie::kTwice,
                                         AllocatorLie::kEnds, AllocatorLie::kPipe,
                                         AllocatorLie::kSmaller, AllocatorLie::kUnsealed));

}  // namespace
}  // namespace sluice
