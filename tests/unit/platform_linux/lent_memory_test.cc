// SPDX-License-Identifier: Apache-2.0
#include "broker/os/lent_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

namespace sluice::os {
namespace {

constexpr uid_t kReader = 54321;

// A memfd of this user's with `mode`, and a descriptor of it for reading only.
struct Memory {
  explicit Memory(mode_t mode) : fd(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
    EXPECT_EQ(::ftruncate(fd.get(), 4096), 0);
    EXPECT_EQ(::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
    EXPECT_EQ(::fchmod(fd.get(), mode), 0);
    const std::string path = "/proc/self/fd/" + std::to_string(fd.get());
    read_only.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    EXPECT_TRUE(read_only.valid());
  }
  mode_t mode() const {
    struct stat info = {};
    EXPECT_EQ(::fstat(fd.get(), &info), 0);
    return info.st_mode & 07777;
  }

  UniqueFd fd;
  UniqueFd read_only;
};

// Who may write gives the memory over: to the daemon, which lends it to readers.
TEST(LentMemoryTest, WritersMemoryIsTakenOver) {
  const Memory memory(0666);
  TakeOverLentMemory(memory.fd.get(), /*final_seals=*/false);
  EXPECT_EQ(memory.mode(), 0600u);
  EXPECT_TRUE(LendForReading(memory.fd.get(), LentKind::kMemfd, kReader, false).ok());
}

// Who may only read has none to give: it stays as its owner has it, and is lent to nobody who could
// open it for writing.
TEST(LentMemoryTest, ReadersMemoryStaysItsOwners) {
  for (const mode_t mode : {0666u, 0644u}) {
    const Memory memory(mode);
    TakeOverLentMemory(memory.read_only.get(), /*final_seals=*/true);
    EXPECT_EQ(memory.mode(), mode);
    EXPECT_EQ(::fcntl(memory.fd.get(), F_GET_SEALS), F_SEAL_SHRINK | F_SEAL_GROW);
    const auto lent = LendForReading(memory.read_only.get(), LentKind::kMemfd, kReader, false);
    EXPECT_EQ(lent.ok(), mode == 0644u);
    EXPECT_FALSE(LendForReading(memory.read_only.get(), LentKind::kMemfd, ::geteuid(), false).ok());
  }
}

}  // namespace
}  // namespace sluice::os
