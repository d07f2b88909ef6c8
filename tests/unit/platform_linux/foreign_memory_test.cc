// SPDX-License-Identifier: Apache-2.0
#include "broker/os/foreign_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <vector>

#include "broker/os/scoped_handle.h"
#include "tests/unit/platform_linux/open_descriptors.h"

namespace sluice::os {
namespace {

UniqueFd Memfd(size_t bytes, int seals, unsigned flags = 0) {
  UniqueFd fd(::memfd_create("foreign", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags));
  EXPECT_EQ(::ftruncate(fd.get(), static_cast<off_t>(bytes)), 0);
  if (seals != 0) {
    EXPECT_EQ(::fcntl(fd.get(), F_ADD_SEALS, seals), 0);
  }
  return fd;
}

// A memfd may be mapped exactly if it can neither shrink nor grow.
TEST(ForeignMemoryTest, SealsDecideWhetherItMayBeMapped) {
  struct Row {
    int seals;
    bool mappable;
  };
  for (const Row& row : {Row{0, false}, Row{F_SEAL_GROW, false}, Row{F_SEAL_SHRINK, false},
                         Row{F_SEAL_SHRINK | F_SEAL_GROW, true},
                         Row{F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL, true}}) {
    const UniqueFd fd = Memfd(5000, row.seals);
    const auto memory = DescribeForeignMemory(fd.get());
    ASSERT_TRUE(memory.ok()) << memory.status();
    EXPECT_EQ(memory->mappable(), row.mappable) << row.seals;
    EXPECT_EQ(memory->size_bytes, 5000u);
    EXPECT_TRUE(memory->writable);
  }
}

// A descriptor that was opened for reading, and a seal against writing, make it read-only.
TEST(ForeignMemoryTest, KnowsWhatCannotBeWritten) {
  const UniqueFd sealed = Memfd(4096, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE);
  EXPECT_FALSE(DescribeForeignMemory(sealed.get())->writable);
  const UniqueFd writable = Memfd(4096, 0);
  const std::string path = "/proc/self/fd/" + std::to_string(writable.get());
  const UniqueFd read_only(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(read_only.valid());
  EXPECT_FALSE(DescribeForeignMemory(read_only.get())->writable);
}

// A process that may open it anew (root's daemon) must not be made to read for one that may not.
TEST(ForeignMemoryTest, RefusesWhatCannotBeRead) {
  const UniqueFd memory = Memfd(4096, F_SEAL_SHRINK | F_SEAL_GROW);
  const std::string path = "/proc/self/fd/" + std::to_string(memory.get());
  for (const int flags : {O_WRONLY, O_PATH}) {
    const UniqueFd fd(::open(path.c_str(), flags | O_CLOEXEC));
    ASSERT_TRUE(fd.valid());
    EXPECT_EQ(DescribeForeignMemory(fd.get()).status().code(), absl::StatusCode::kInvalidArgument)
        << flags;
  }
}

// Descriptors of no memory are refused: pipes, devices, folders, files of other file systems,
// nothing at all.
TEST(ForeignMemoryTest, RefusesWhatIsNoMemory) {
  const int before = CountOpenDescriptors();
  {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const UniqueFd first(ends[0]), second(ends[1]);
    const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    const UniqueFd process(::open("/proc/self/status", O_RDONLY | O_CLOEXEC));
    for (const int fd : {first.get(), null.get(), process.get(), -1, 999'999})
      EXPECT_FALSE(DescribeForeignMemory(fd).ok()) << fd;
  }
  EXPECT_EQ(CountOpenDescriptors(), before);
}

// Layouts are judged in 64 bits without wrapping: offset, rows, slices, short last row.
TEST(ForeignMemoryTest, LayoutsMustFit) {
  const auto fits = [](const MemoryLayout& layout, uint64_t size) {
    return CheckLayout(layout, size).ok();
  };
  EXPECT_TRUE(fits({.row_bytes = 100}, 100));
  EXPECT_FALSE(fits({.row_bytes = 101}, 100));
  EXPECT_FALSE(fits({.row_bytes = 0}, 100));
  EXPECT_TRUE(fits({.offset = 10, .row_bytes = 90}, 100));
  EXPECT_FALSE(fits({.offset = 11, .row_bytes = 90}, 100));
  EXPECT_FALSE(fits({.offset = UINT64_MAX, .row_bytes = 2}, 100));
  EXPECT_TRUE(fits({.row_bytes = 10, .rows = 4, .row_pitch = 30}, 100));
  EXPECT_FALSE(fits({.row_bytes = 10, .rows = 4, .row_pitch = 31}, 100));
  EXPECT_FALSE(fits({.row_bytes = 10, .rows = 4, .row_pitch = 9}, 100));
  EXPECT_FALSE(fits({.row_bytes = 10, .rows = UINT64_MAX / 4, .row_pitch = 30}, 100));
  EXPECT_TRUE(
      fits({.row_bytes = 10, .rows = 2, .slices = 3, .row_pitch = 10, .slice_pitch = 40}, 100));
  EXPECT_FALSE(
      fits({.row_bytes = 10, .rows = 2, .slices = 3, .row_pitch = 10, .slice_pitch = 41}, 100));
  EXPECT_FALSE(fits({.row_bytes = 10, .rows = 2, .slices = 2, .slice_pitch = 19}, 100));
  EXPECT_FALSE(fits({.row_bytes = 10, .slices = 3, .slice_pitch = UINT64_MAX / 2}, 100));
  EXPECT_FALSE(fits({.row_bytes = 10, .rows = 0}, 100));
}

// Reads and writes of memory that has shrunk are errors, and make it no larger.
TEST(ForeignMemoryTest, ShrunkMemoryIsAnError) {
  const UniqueFd fd = Memfd(4096, 0);
  std::vector<uint8_t> bytes(4096, 7);
  EXPECT_TRUE(WriteForeignMemory(fd.get(), bytes.data(), 4096).ok());
  std::vector<uint8_t> back(4096);
  EXPECT_TRUE(ReadForeignMemory(fd.get(), back.data(), 4096).ok());
  EXPECT_EQ(back, bytes);
  ASSERT_EQ(::ftruncate(fd.get(), 100), 0);
  EXPECT_EQ(ReadForeignMemory(fd.get(), back.data(), 4096).code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(WriteForeignMemory(fd.get(), back.data(), 4096).code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(DescribeForeignMemory(fd.get())->size_bytes, 100u);
}

// A descriptor that appends is written to from the beginning, and makes the memory no larger.
TEST(ForeignMemoryTest, AppendingDescriptorsAreWrittenInPlace) {
  const UniqueFd fd = Memfd(4096, 0);
  ASSERT_EQ(::fcntl(fd.get(), F_SETFL, O_APPEND), 0);
  std::vector<uint8_t> bytes(4096, 7);
  ASSERT_TRUE(WriteForeignMemory(fd.get(), bytes.data(), 4096).ok());
  std::vector<uint8_t> back(4096);
  ASSERT_TRUE(ReadForeignMemory(fd.get(), back.data(), 4096).ok());
  EXPECT_EQ(back, bytes);
  EXPECT_EQ(DescribeForeignMemory(fd.get())->size_bytes, 4096u);
}

}  // namespace
}  // namespace sluice::os
