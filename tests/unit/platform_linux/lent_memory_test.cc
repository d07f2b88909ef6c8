// SPDX-License-Identifier: Apache-2.0
#include "broker/os/lent_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "broker/os/local_socket.h"

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

// An owner that may write gives the memory over: to the daemon, which lends it to readers.
TEST(LentMemoryTest, WritersMemoryIsTakenOver) {
  const Memory memory(0666);
  TakeOverLentMemory(memory.fd.get(), /*final_seals=*/false);
  EXPECT_EQ(memory.mode(), 0600u);
  EXPECT_TRUE(LendForReading(memory.fd.get(), LentKind::kMemfd, kReader, false).ok());
}

// A process that may only read has none to give: the memory stays as its owner has it, and is lent
// to nobody who could open it for writing.
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

// The daemon's own memory, as a resource has it.
StrangersFds OwnMemory() {
  StrangersFds own;
  absl::StatusOr<UniqueFd> made = CreateLentMemory("test", 4096);
  EXPECT_TRUE(made.ok());
  own.push_back(*std::move(made));
  EXPECT_TRUE(OpenOwnMemory(&own).ok());
  return own;
}

// Whoever writes or reads lent memory is seen as long as a descriptor, a message or a mapping is
// left, and nobody is before and after.
TEST(RemainingHoldersTest, MemfdsAreSeen) {
  for (const bool writing : {true, false}) {
    StrangersFds own = OwnMemory();
    absl::StatusOr<UniqueFd> lent = writing
                                        ? LendForWriting(own[0].get(), LentKind::kMemfd)
                                        : LendForReading(own[0].get(), LentKind::kMemfd, 0, false);
    ASSERT_TRUE(lent.ok());
    const RemainingHolders holders(std::move(own));
    EXPECT_TRUE(holders.Any());
    UniqueFd copy(::dup(lent->get()));
    lent->reset();
    EXPECT_TRUE(holders.Any());
    auto channel = CreateSocketPair();
    ASSERT_TRUE(channel.ok());
    const int number = copy.get();
    ASSERT_TRUE(SendMessage(channel->first.get(), "x", 1, &number, 1).ok());
    copy.reset();
    EXPECT_TRUE(holders.Any());
    char byte = 0;
    std::vector<UniqueFd> received;
    ASSERT_TRUE(ReceiveMessage(channel->second.get(), &byte, 1, &received, 1).ok());
    void* mapped = ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, received[0].get(), 0);
    ASSERT_NE(mapped, MAP_FAILED);
    received.clear();
    EXPECT_TRUE(holders.Any());
    ::munmap(mapped, 4096);
    EXPECT_FALSE(holders.Any());
    EXPECT_FALSE(holders.Any());  // Asking changes nothing.
  }
}

// Also one who opens it once more from what he was lent.
TEST(RemainingHoldersTest, ReopenedMemfdsAreSeen) {
  StrangersFds own = OwnMemory();
  absl::StatusOr<UniqueFd> lent = LendForReading(own[0].get(), LentKind::kMemfd, 0, true);
  ASSERT_TRUE(lent.ok());
  const RemainingHolders holders(std::move(own));
  for (const int flags : {O_RDONLY, O_RDWR}) {
    const std::string path = "/proc/self/fd/" + std::to_string(lent->get());
    UniqueFd again(::open(path.c_str(), flags | O_CLOEXEC));
    ASSERT_TRUE(again.valid());
    lent->reset(again.release());
    EXPECT_TRUE(holders.Any());
  }
  lent->reset();
  EXPECT_FALSE(holders.Any());
}

// Of memory that only a driver opens (a pipe stands for it) the daemon keeps nothing, and sees that
// others do.
TEST(RemainingHoldersTest, OtherFilesAreSeen) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
  const UniqueFd other_end(ends[0]);
  StrangersFds own;
  own.push_back(UniqueFd(ends[1]));
  ASSERT_TRUE(OpenOwnMemory(&own).ok());
  absl::StatusOr<UniqueFd> lent = LendForWriting(own[0].get(), LentKind::kOpaque);
  ASSERT_TRUE(lent.ok());
  const RemainingHolders holders(std::move(own));
  EXPECT_TRUE(holders.Any());
  UniqueFd copy(::dup(lent->get()));
  lent->reset();
  EXPECT_TRUE(holders.Any());
  copy.reset();
  bool any = true;  // The daemon's own is closed on another thread.
  for (int i = 0; i < 1000 && any; ++i) {
    any = holders.Any();
    if (any) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_FALSE(any);
  char byte = 0;
  EXPECT_EQ(::read(other_end.get(), &byte, 1), 0);
}

}  // namespace
}  // namespace sluice::os
