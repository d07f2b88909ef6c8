// SPDX-License-Identifier: Apache-2.0
#include "broker/os/shared_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <string>

#include "broker/os/doorbell.h"
#include "tests/unit/platform_linux/open_descriptors.h"

namespace sluice::os {
namespace {

constexpr size_t kSize = 64 * 1024;

// New memory is zero, has its size, and verifies.
TEST(SharedMemoryTest, CreatedMemoryVerifies) {
  const auto fd = CreateSharedMemory("test", kSize);
  ASSERT_TRUE(fd.ok()) << fd.status();
  EXPECT_TRUE(VerifySharedMemory(fd->get(), kSize).ok());
  EXPECT_EQ(::fcntl(fd->get(), F_GETFD), FD_CLOEXEC);
  const auto mapping = SharedMapping::Map(fd->get(), kSize, true);
  ASSERT_TRUE(mapping.ok()) << mapping.status();
  for (size_t i = 0; i < kSize; ++i) ASSERT_EQ(mapping->data()[i], 0);
}

// Nobody, the maker included, can shrink or grow it, or add seals.
TEST(SharedMemoryTest, SizeIsFixedForLife) {
  const auto fd = CreateSharedMemory("test", kSize);
  ASSERT_TRUE(fd.ok());
  EXPECT_NE(::ftruncate(fd->get(), kSize / 2), 0);
  EXPECT_NE(::ftruncate(fd->get(), kSize * 2), 0);
  EXPECT_NE(::fcntl(fd->get(), F_ADD_SEALS, F_SEAL_WRITE), 0);
}

// Whoever gets it reads what its maker writes, sleeps on it, and cannot write it in any way.
TEST(SharedMemoryTest, OnlyItsMakerWritesAnOwnersMemory) {
  const auto memory = CreateOwnersMemory("test", kSize);
  if (absl::IsUnimplemented(memory.status())) GTEST_SKIP() << memory.status();
  ASSERT_TRUE(memory.ok()) << memory.status();
  const int fd = memory->reader.get();
  EXPECT_TRUE(VerifySharedMemory(fd, kSize).ok());
  const auto read = SharedMapping::Map(fd, kSize, false);
  ASSERT_TRUE(read.ok()) << read.status();
  memory->mapping.data()[7] = 42;
  EXPECT_EQ(read->data()[7], 42);
  EXPECT_FALSE(SharedMapping::Map(fd, kSize, true).ok());
  EXPECT_NE(::mprotect(read->data(), kSize, PROT_READ | PROT_WRITE), 0);
  EXPECT_LT(::pwrite(fd, "x", 1, 0), 0);
  const UniqueFd again(::open(("/proc/self/fd/" + std::to_string(fd)).c_str(), O_RDWR));
  EXPECT_FALSE(again.valid() && SharedMapping::Map(again.get(), kSize, true).ok());
  auto* const word = reinterpret_cast<std::atomic<uint32_t>*>(read->data());
  EXPECT_FALSE(FutexWait(word, 0, ~0U, 1'000'000));  // Its time is over: it has slept.
}

// A receiver refuses memory of another size, without seals, with too few of them, and what is none.
TEST(SharedMemoryTest, VerifyRefusesWhatCouldShrink) {
  const auto good = CreateSharedMemory("test", kSize);
  ASSERT_TRUE(good.ok());
  EXPECT_FALSE(VerifySharedMemory(good->get(), kSize + 1).ok());
  EXPECT_FALSE(VerifySharedMemory(good->get(), kSize - 1).ok());

  const UniqueFd unsealed(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(unsealed.get(), kSize), 0);
  EXPECT_FALSE(VerifySharedMemory(unsealed.get(), kSize).ok());
  ASSERT_EQ(::fcntl(unsealed.get(), F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SEAL), 0);
  EXPECT_FALSE(VerifySharedMemory(unsealed.get(), kSize).ok());

  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd read_end(ends[0]);
  const UniqueFd write_end(ends[1]);
  EXPECT_FALSE(VerifySharedMemory(read_end.get(), kSize).ok());
  EXPECT_FALSE(VerifySharedMemory(-1, kSize).ok());
}

// Two mappings of one descriptor show the same bytes; a read-only one is read-only.
TEST(SharedMemoryTest, MappingsShareBytes) {
  const auto fd = CreateSharedMemory("test", kSize);
  ASSERT_TRUE(fd.ok());
  const auto writer = SharedMapping::Map(fd->get(), kSize, true);
  const auto reader = SharedMapping::Map(fd->get(), kSize, false);
  ASSERT_TRUE(writer.ok() && reader.ok());
  writer->data()[kSize - 1] = 42;
  EXPECT_EQ(reader->data()[kSize - 1], 42);
  EXPECT_EQ(reader->size(), kSize);
  EXPECT_DEATH(const_cast<volatile uint8_t&>(reader->data()[0]) = 1, "");
}

// A fixed address is taken exactly, and never at the cost of what is mapped there already.
TEST(SharedMemoryTest, FixedAddressNeverReplaces) {
  const auto fd = CreateSharedMemory("test", kSize);
  ASSERT_TRUE(fd.ok());
  void* free_place = nullptr;
  {
    auto probe = SharedMapping::Map(fd->get(), kSize, true);
    ASSERT_TRUE(probe.ok());
    free_place = probe->data();
  }
  const auto fixed = SharedMapping::Map(fd->get(), kSize, true, free_place);
  ASSERT_TRUE(fixed.ok()) << fixed.status();
  EXPECT_EQ(fixed->data(), free_place);
  fixed->data()[0] = 7;
  const auto second = SharedMapping::Map(fd->get(), kSize, true, free_place);
  EXPECT_TRUE(absl::IsAlreadyExists(second.status())) << second.status();
  EXPECT_EQ(fixed->data()[0], 7);
}

// A child made by fork does not have its parent's mapping.
TEST(SharedMemoryTest, ForkDoesNotInheritMappings) {
  const auto fd = CreateSharedMemory("test", kSize);
  const auto mapping = SharedMapping::Map(fd->get(), kSize, true);
  ASSERT_TRUE(mapping.ok());
  const pid_t child = ::fork();
  if (child == 0) {
    unsigned char resident;
    // mincore says ENOMEM for addresses that are not mapped.
    const bool gone = ::mincore(mapping->data(), 4096, &resident) != 0 && errno == ENOMEM;
    ::_exit(gone ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// Zeroing reaches exactly the bytes it is told, few or many, at any offset.
TEST(SharedMemoryTest, ZeroingIsExact) {
  constexpr size_t kLarge = 1 << 20;
  const auto fd = CreateSharedMemory("test", kLarge);
  const auto mapping = SharedMapping::Map(fd->get(), kLarge, true);
  ASSERT_TRUE(mapping.ok());
  const std::pair<size_t, size_t> ranges[] = {{10, 100}, {4096, 8192}, {12345, 300'000}};
  for (const auto& [offset, size] : ranges) {
    std::memset(mapping->data(), 0xaa, kLarge);
    ZeroSharedMemory(fd->get(), mapping->data() + offset, offset, size);
    for (size_t i = 0; i < kLarge; ++i) {
      ASSERT_EQ(mapping->data()[i], i >= offset && i < offset + size ? 0 : 0xaa) << i;
    }
  }
}

// Moving a mapping moves its ownership: it is unmapped once.
TEST(SharedMemoryTest, MoveKeepsOneOwner) {
  const auto fd = CreateSharedMemory("test", kSize);
  auto first = SharedMapping::Map(fd->get(), kSize, true);
  ASSERT_TRUE(first.ok());
  uint8_t* const address = first->data();
  SharedMapping second = *std::move(first);
  EXPECT_EQ(second.data(), address);
  EXPECT_EQ(first->data(), nullptr);
  second = SharedMapping();
  unsigned char resident;
  EXPECT_NE(::mincore(address, 4096, &resident), 0);
}

// A sealed copy gives its bytes back, an empty one too, and cannot be written.
TEST(SharedMemoryTest, SealedCopyIsFrozen) {
  const std::string bytes(100'000, 'z');
  const auto fd = CreateSealedCopy("test", bytes.data(), bytes.size());
  ASSERT_TRUE(fd.ok()) << fd.status();
  EXPECT_EQ(*ReadSealedCopy(fd->get(), bytes.size()), bytes);
  EXPECT_LT(::pwrite(fd->get(), "x", 1, 0), 0);
  EXPECT_FALSE(SharedMapping::Map(fd->get(), bytes.size(), true).ok());
  const auto empty = CreateSealedCopy("test", "", 0);
  ASSERT_TRUE(empty.ok());
  EXPECT_EQ(*ReadSealedCopy(empty->get(), 0), "");
}

// Reading a sealed copy refuses one that is too large, or that somebody could still write.
TEST(SharedMemoryTest, ReadSealedCopyChecksFirst) {
  const int before = CountOpenDescriptors();
  {
    const auto large = CreateSealedCopy("test", "123456", 6);
    ASSERT_TRUE(large.ok());
    EXPECT_FALSE(ReadSealedCopy(large->get(), 5).ok());
    const auto writable = CreateSharedMemory("test", kSize);
    ASSERT_TRUE(writable.ok());
    EXPECT_FALSE(ReadSealedCopy(writable->get(), kSize).ok());
  }
  EXPECT_EQ(CountOpenDescriptors(), before);
}

}  // namespace
}  // namespace sluice::os
