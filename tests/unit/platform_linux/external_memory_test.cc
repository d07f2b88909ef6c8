// SPDX-License-Identifier: Apache-2.0
#include "daemon/helpers/external_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "broker/os/process.h"
#include "tests/unit/platform_linux/open_descriptors.h"
#include "tests/unit/platform_linux/pattern.h"

namespace sluice::os {
namespace {

constexpr uint64_t kBytes = 1000 * 1000;
constexpr int kGlTimeoutMs = 60'000;

// With Mesa's software driver: what runs on every machine.
class ExternalMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = ExternalMemoryDevice::Open(std::nullopt);
    if (!opened.ok()) GTEST_SKIP() << opened.status();
    device_ = *std::move(opened);
  }

  std::shared_ptr<ExternalMemoryDevice> device_;
};

// A UUID that no device has is refused with a message that names it and the devices there are.
TEST_F(ExternalMemoryTest, UnknownUuidIsNamed) {
  const DeviceUuid unknown = {1, 2, 3};
  const auto opened = ExternalMemoryDevice::Open(unknown);
  EXPECT_EQ(opened.status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(absl::StrContains(opened.status().message(), UuidText(unknown)));
  EXPECT_TRUE(absl::StrContains(opened.status().message(), device_->name()));
}

// The device is found again by the UUID that it reports.
TEST_F(ExternalMemoryTest, DeviceIsFoundByItsUuid) {
  const auto again = ExternalMemoryDevice::Open(device_->device_uuid());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ((*again)->name(), device_->name());
  EXPECT_EQ((*again)->driver_uuid(), device_->driver_uuid());
}

// Memory of a CPU device is the host's: mapped, zero, larger than asked for by some slack.
TEST_F(ExternalMemoryTest, CpuMemoryIsMappedAndZero) {
  ASSERT_TRUE(device_->is_cpu());
  const auto memory = device_->AllocateBuffer(kBytes, ExternalHandle::kOpaqueFd);
  ASSERT_TRUE(memory.ok()) << memory.status();
  EXPECT_EQ((*memory)->size_bytes(), kBytes);
  EXPECT_GT((*memory)->allocation_bytes(), kBytes);
  ASSERT_NE((*memory)->host(), nullptr);
  const uint8_t* const host = (*memory)->host();
  EXPECT_TRUE(std::all_of(host, host + kBytes, [](uint8_t byte) { return byte == 0; }));
}

// The device clears all of an allocation, whatever was asked for, to the last byte, again and
// again.
TEST_F(ExternalMemoryTest, DeviceClearsToTheLastByte) {
  for (const uint64_t bytes : {uint64_t{1}, uint64_t{65'537}, uint64_t{3'000'001}}) {
    const auto memory = device_->AllocateBuffer(bytes, ExternalHandle::kOpaqueFd);
    ASSERT_TRUE(memory.ok()) << memory.status();
    uint8_t* const host = (*memory)->host();
    uint8_t* const end = host + (*memory)->allocation_bytes();
    EXPECT_EQ(std::count(host, end, 0), end - host) << bytes << ", as it comes";
    for (int round = 0; round < 3; ++round) {
      std::fill(host, end, uint8_t{0xff});
      const absl::Status cleared = (*memory)->Clear();
      EXPECT_TRUE(cleared.ok()) << cleared;
      EXPECT_EQ(std::count(host, end, 0), end - host) << bytes;
    }
  }
}

// Where nobody says which, it is a GPU if there is one, and else the device on the CPU.
TEST_F(ExternalMemoryTest, BestDeviceIsFound) {
  const auto best = ExternalMemoryDevice::OpenBest();
  ASSERT_TRUE(best.ok()) << best.status();
  EXPECT_TRUE(!(*best)->is_cpu() || (*best)->device_uuid() == device_->device_uuid());
}

// A process that maps the descriptor finds the memory at the place that was named, whatever its
// size, and zero. A descriptor that can shrink, or is of other memory, is not to be mapped.
TEST_F(ExternalMemoryTest, DescriptorSaysWhereTheMemoryIs) {
  for (const uint64_t bytes : {uint64_t{1}, uint64_t{4097}, kBytes}) {
    const auto memory = device_->AllocateBuffer(bytes, ExternalHandle::kOpaqueFd);
    ASSERT_TRUE(memory.ok()) << memory.status();
    const absl::StatusOr<UniqueFd> fd = (*memory)->Export();
    ASSERT_TRUE(fd.ok()) << fd.status();
    const absl::StatusOr<uint64_t> offset = (*memory)->OffsetInDescriptor(fd->get());
    ASSERT_TRUE(offset.ok()) << offset.status();
    uint8_t* const host = (*memory)->host();
    EXPECT_TRUE(std::all_of(host, host + (*memory)->allocation_bytes(),
                            [](uint8_t byte) { return byte == 0; }));
    const std::vector<uint8_t> wrote = Pattern(0, bytes);
    std::copy(wrote.begin(), wrote.end(), host);
    std::vector<uint8_t> seen(bytes);
    EXPECT_EQ(::pread(fd->get(), seen.data(), bytes, static_cast<off_t>(*offset)),
              static_cast<ssize_t>(bytes));
    EXPECT_EQ(seen, wrote);

    const UniqueFd unsealed(::memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    ASSERT_EQ(::ftruncate(unsealed.get(), 4 << 20), 0);
    EXPECT_EQ((*memory)->OffsetInDescriptor(unsealed.get()).status().code(),
              absl::StatusCode::kFailedPrecondition);
    ASSERT_EQ(::fcntl(unsealed.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
    EXPECT_EQ((*memory)->OffsetInDescriptor(unsealed.get()).status().code(),
              absl::StatusCode::kFailedPrecondition);
  }
}

// Another process's changes to the memory in OpenGL are there when it has ended, bit for bit, and
// the reverse.
TEST_F(ExternalMemoryTest, AnotherProcessOpensItInGl) {
  const auto memory = device_->AllocateBuffer(kBytes, ExternalHandle::kOpaqueFd);
  ASSERT_TRUE(memory.ok()) << memory.status();
  const std::vector<uint8_t> before = Pattern(0, kBytes);
  std::copy(before.begin(), before.end(), (*memory)->host());
  const absl::StatusOr<UniqueFd> fd = (*memory)->Export();
  ASSERT_TRUE(fd.ok()) << fd.status();
  SpawnOptions options;
  options.path = GL_IMPORTER;
  options.arguments = {absl::StrCat((*memory)->allocation_bytes()), absl::StrCat(kBytes),
                       UuidText(device_->device_uuid()), UuidText(device_->driver_uuid())};
  options.descriptors = {{fd->get(), 3}};
  options.environment = {"LIBGL_ALWAYS_SOFTWARE=1", "GALLIUM_DRIVER=llvmpipe"};
  absl::StatusOr<ChildProcess> importer = Spawn(options);
  ASSERT_TRUE(importer.ok()) << importer.status();
  const std::optional<ExitStatus> end = importer->WaitAndReap(kGlTimeoutMs);
  ASSERT_TRUE(end.has_value());
  if (end->code == 77) GTEST_SKIP() << "no OpenGL with GL_EXT_memory_object_fd here";
  ASSERT_EQ(end->Describe(), "exit code 0");
  const std::vector<uint8_t> after = Pattern(1, kBytes);
  EXPECT_TRUE(std::equal(after.begin(), after.end(), (*memory)->host()));
}

// A descriptor keeps the memory, and memory keeps its device, whatever is dropped first.
TEST_F(ExternalMemoryTest, MemoryOutlivesItsMakersReferences) {
  auto memory = device_->AllocateBuffer(4096, ExternalHandle::kOpaqueFd);
  ASSERT_TRUE(memory.ok()) << memory.status();
  device_.reset();
  const absl::StatusOr<UniqueFd> fd = (*memory)->Export();
  ASSERT_TRUE(fd.ok()) << fd.status();
  memory->reset();
  struct stat info;
  EXPECT_EQ(fstat(fd->get(), &info), 0);
}

// Sizes that cannot be are refused, with the device's limit in the message, and leave
// no descriptor behind.
TEST_F(ExternalMemoryTest, ImpossibleRequestsAreRefused) {
  const int descriptors = CountOpenDescriptors();
  for (const uint64_t bytes :
       {uint64_t{0}, ~uint64_t{0}, ~uint64_t{0} - (1 << 16), uint64_t{1} << 62}) {
    EXPECT_EQ(device_->AllocateBuffer(bytes, ExternalHandle::kOpaqueFd).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(CountOpenDescriptors(), descriptors);
}

// Where the device exports no dma-bufs or no semaphores, asking for one is refused as such.
TEST_F(ExternalMemoryTest, WhatIsMissingIsSaid) {
  const auto dma_buf = device_->AllocateBuffer(4096, ExternalHandle::kDmaBuf);
  EXPECT_EQ(dma_buf.ok(), device_->exports_dma_buf()) << dma_buf.status();
  EXPECT_TRUE(dma_buf.ok() || absl::IsUnimplemented(dma_buf.status())) << dma_buf.status();
  const auto semaphore = device_->CreateSemaphore();
  EXPECT_EQ(semaphore.ok(), device_->exports_semaphores()) << semaphore.status();
  EXPECT_TRUE(!semaphore.ok() || (*semaphore)->Export().ok());
}

// Many lives of memory and descriptors leave nothing open.
TEST_F(ExternalMemoryTest, NothingIsLeftOpen) {
  int descriptors = 0;
  for (int i = 0; i < 50; ++i) {
    if (i == 5) descriptors = CountOpenDescriptors();  // The driver's own part is there.
    const auto memory = device_->AllocateBuffer(kBytes, ExternalHandle::kOpaqueFd);
    ASSERT_TRUE(memory.ok()) << memory.status();
    ASSERT_TRUE((*memory)->Export().ok());
  }
  EXPECT_EQ(CountOpenDescriptors(), descriptors);
}

}  // namespace
}  // namespace sluice::os
