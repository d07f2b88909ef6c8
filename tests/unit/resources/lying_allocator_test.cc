// SPDX-License-Identifier: Apache-2.0
//
// An allocator, which carries drivers and so is not trusted, that lies to the broker: whoever asked
// gets an error, the next one gets memory, and the broker is as it was before.
#include "tests/unit/resources/lying_allocator.h"

#include "tests/unit/resources/raw_client.h"

namespace sluice {
namespace {

class LyingAllocatorTest : public ResourceTest, public testing::WithParamInterface<AllocatorLie> {};

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
