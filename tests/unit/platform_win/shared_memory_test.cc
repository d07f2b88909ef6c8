// SPDX-License-Identifier: Apache-2.0
#include "broker/os/shared_memory.h"

#include <gtest/gtest.h>
#include <windows.h>
// After windows.h.
#include <sddl.h>

#include <atomic>
#include <cstring>
#include <string>
#include <thread>

#include "broker/os/doorbell.h"
#include "broker/os/foreign_memory.h"
#include "broker/os/lent_memory.h"
#include "broker/os/local_socket.h"
#include "platform_win/handles/section.h"
#include "tests/unit/platform_win/child.h"

#undef SendMessage  // A macro of windows.h.

namespace sluice::os {
namespace {

constexpr size_t kSize = 64 * 1024;

UniqueFd AddSection(HANDLE handle) {
  return AddDescriptor(std::make_shared<Section>(OwnedHandle(handle), Section::Bells()));
}

HANDLE HandleOf(int fd) { return FindDescriptor(fd)->handle(); }

// New memory is zero, has its size, and verifies; another size does not.
TEST(SharedMemoryTest, CreatedMemoryVerifies) {
  const auto fd = CreateSharedMemory("test", kSize);
  ASSERT_TRUE(fd.ok()) << fd.status();
  EXPECT_TRUE(VerifySharedMemory(fd->get(), kSize).ok());
  EXPECT_FALSE(VerifySharedMemory(fd->get(), kSize + 4096).ok());
  EXPECT_FALSE(VerifySharedMemory(fd->get(), kSize - 4096).ok());
  EXPECT_FALSE(VerifySharedMemory(-1, kSize).ok());
  const auto mapping = SharedMapping::Map(fd->get(), kSize, true);
  ASSERT_TRUE(mapping.ok()) << mapping.status();
  for (size_t i = 0; i < kSize; ++i) ASSERT_EQ(mapping->data()[i], 0);
}

// Memory whose pages are only reserved, or are a file's, could fault under a reader: it is refused.
TEST(SharedMemoryTest, VerifyRefusesWhatCouldFault) {
  const UniqueFd reserved = AddSection(::CreateFileMappingW(
      INVALID_HANDLE_VALUE, nullptr, PAGE_READWRITE | SEC_RESERVE, 0, kSize, nullptr));
  ASSERT_NE(HandleOf(reserved.get()), nullptr);
  EXPECT_FALSE(VerifySharedMemory(reserved.get(), kSize).ok());
  EXPECT_FALSE(CheckLentMemory(reserved.get(), kSize).ok());

  wchar_t folder[MAX_PATH];
  wchar_t path[MAX_PATH];
  ::GetTempPathW(MAX_PATH, folder);
  ::GetTempFileNameW(folder, L"slu", 0, path);
  const OwnedHandle file(::CreateFileW(path, GENERIC_READ | GENERIC_WRITE, 0, nullptr,
                                       CREATE_ALWAYS, FILE_FLAG_DELETE_ON_CLOSE, nullptr));
  const UniqueFd mapped_file =
      AddSection(::CreateFileMappingW(file.get(), nullptr, PAGE_READWRITE, 0, kSize, nullptr));
  ASSERT_NE(HandleOf(mapped_file.get()), nullptr);
  EXPECT_FALSE(VerifySharedMemory(mapped_file.get(), kSize).ok());
  EXPECT_FALSE(CheckLentMemory(mapped_file.get(), kSize).ok());
}

// Two mappings of one section show the same bytes.
TEST(SharedMemoryTest, MappingsShareBytes) {
  const auto fd = CreateSharedMemory("test", kSize);
  const auto writer = SharedMapping::Map(fd->get(), kSize, true);
  const auto reader = SharedMapping::Map(fd->get(), kSize, false);
  ASSERT_TRUE(writer.ok() && reader.ok());
  writer->data()[kSize - 1] = 42;
  EXPECT_EQ(reader->data()[kSize - 1], 42);
}

// Nobody may make more of a handle, the owner included, who else could change who may: the list has
// one entry, which gives OWNER RIGHTS nothing.
TEST(SharedMemoryTest, AccessListGivesNothing) {
  const auto fd = CreateSharedMemory("test", kSize);
  alignas(8) char buffer[1024];
  DWORD size = 0;
  ASSERT_TRUE(::GetKernelObjectSecurity(HandleOf(fd->get()), DACL_SECURITY_INFORMATION, buffer,
                                        sizeof(buffer), &size))
      << ::GetLastError();
  BOOL present = FALSE;
  BOOL defaulted = FALSE;
  ACL* list = nullptr;
  ASSERT_TRUE(::GetSecurityDescriptorDacl(buffer, &present, &list, &defaulted));
  ASSERT_TRUE(present && list != nullptr);
  ASSERT_EQ(list->AceCount, 1);
  void* entry = nullptr;
  ASSERT_TRUE(::GetAce(list, 0, &entry));
  const auto* allowed = static_cast<const ACCESS_ALLOWED_ACE*>(entry);
  EXPECT_EQ(allowed->Header.AceType, ACCESS_ALLOWED_ACE_TYPE);
  EXPECT_EQ(allowed->Mask, 0u);
  SID owner_rights = {
      SID_REVISION, 1, SECURITY_CREATOR_SID_AUTHORITY, {SECURITY_CREATOR_OWNER_RIGHTS_RID}};
  EXPECT_TRUE(::EqualSid(const_cast<DWORD*>(&allowed->SidStart), &owner_rights));
  const OwnedHandle reading = DuplicateHandleHere(HandleOf(fd->get()), SECTION_MAP_READ);
  ASSERT_TRUE(reading.valid());
  EXPECT_FALSE(DuplicateHandleHere(reading.get(), SECTION_MAP_READ | SECTION_MAP_WRITE).valid());
}

// A fixed address is taken exactly, and never at the cost of what is mapped there already.
TEST(SharedMemoryTest, FixedAddressNeverReplaces) {
  const auto fd = CreateSharedMemory("test", kSize);
  auto first = SharedMapping::Map(fd->get(), kSize, true);
  ASSERT_TRUE(first.ok());
  uint8_t* const place = first->data();
  EXPECT_FALSE(SharedMapping::Map(fd->get(), kSize, true, place).ok());
  EXPECT_EQ(place[0], 0);
  *first = SharedMapping();
  const auto second = SharedMapping::Map(fd->get(), kSize, true, place);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->data(), place);
}

// A sealed copy holds its bytes, however many, and can be read only.
TEST(SharedMemoryTest, SealedCopyIsReadOnly) {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{4096}, size_t{100'000}}) {
    const std::string bytes(size, 'b');
    const auto fd = CreateSealedCopy("test", bytes.data(), bytes.size());
    ASSERT_TRUE(fd.ok()) << fd.status();
    EXPECT_EQ(*ReadSealedCopy(fd->get(), 100'000), bytes);
    EXPECT_FALSE(SharedMapping::Map(fd->get(), 4096, /*writable=*/true).ok());
    EXPECT_EQ(ReadSealedCopy(fd->get(), size / 2).ok(), size == 0);
  }
  const auto open = CreateSharedMemory("test", kSize);
  EXPECT_FALSE(ReadSealedCopy(open->get(), kSize).ok());
}

// Whoever has a handle for reading cannot make one for writing of it.
TEST(SharedMemoryTest, ReadersStayReaders) {
  const auto memory = CreateLentMemory("test", kSize);
  ASSERT_TRUE(memory.ok());
  EXPECT_EQ(*CheckLentMemory(memory->get(), kSize), LentKind::kMemfd);
  const auto reader = LendForReading(memory->get(), LentKind::kMemfd, 0, false);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_TRUE(SharedMapping::Map(reader->get(), kSize, false).ok());
  EXPECT_FALSE(SharedMapping::Map(reader->get(), kSize, true).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(LendForWriting(reader->get(), LentKind::kMemfd).status()));
  const auto writer = LendForWriting(memory->get(), LentKind::kMemfd);
  ASSERT_TRUE(writer.ok()) << writer.status();
  EXPECT_TRUE(SharedMapping::Map(writer->get(), kSize, true).ok());
  const auto described = DescribeForeignMemory(reader->get());
  ASSERT_TRUE(described.ok());
  EXPECT_TRUE(described->mappable());
  EXPECT_FALSE(described->writable);
}

// A section of somebody else's with the access list `text`, or with the one that is usual.
UniqueFd SectionWith(const wchar_t* text) {
  SECURITY_ATTRIBUTES attributes = {sizeof(attributes), nullptr, FALSE};
  if (text != nullptr) {
    EXPECT_TRUE(::ConvertStringSecurityDescriptorToSecurityDescriptorW(
        text, SDDL_REVISION_1, &attributes.lpSecurityDescriptor, nullptr));
  }
  OwnedHandle section(
      ::CreateFileMappingW(INVALID_HANDLE_VALUE, &attributes, PAGE_READWRITE, 0, kSize, nullptr));
  EXPECT_TRUE(section.valid());
  ::LocalFree(attributes.lpSecurityDescriptor);
  return AddDescriptor(std::make_shared<Section>(std::move(section), Section::Bells()));
}

// Memory that another program made goes to a reader only if no account could make more of it. That
// includes the owner, who may change a list that does not name it, and any account that this
// process is not.
TEST(SharedMemoryTest, ReadersOfImportedMemoryStayReaders) {
  const auto lent = [](const wchar_t* text, bool trusted) {
    const UniqueFd section = SectionWith(text);
    return LendForReading(section.get(), LentKind::kMemfd, 0, trusted).ok();
  };
  EXPECT_TRUE(lent(L"D:P(A;;0x1;;;S-1-3-4)", false));               // SECTION_QUERY for the owner.
  EXPECT_TRUE(lent(L"D:P(A;;0x4;;;WD)(A;;0x1;;;S-1-3-4)", false));  // Reading for everybody.
  const wchar_t* const unsafe[] = {
      nullptr,
      L"D:P",                                       // Nobody; but the owner may change that.
      L"D:P(A;;0x4;;;WD)",                          // The same.
      L"D:P(A;;0x1;;;S-1-3-4)(A;;0x2;;;S-1-5-19)",  // Writing, for one account.
      L"D:P(A;;WD;;;S-1-3-4)",                      // The owner may change the list.
      L"D:P(A;;0x1;;;S-1-3-4)(A;;GA;;;SY)",
      L"D:P(A;IO;0x1;;;S-1-3-4)",  // Of other objects than this.
  };
  for (const wchar_t* text : unsafe) {
    EXPECT_FALSE(lent(text, false)) << (text == nullptr ? L"usual" : text);
    EXPECT_TRUE(lent(text, true));
  }
}

// A word that differs already does not let the waiter sleep; without a wake the wait ends at its
// timeout: in memory of the process alone, and in a section.
TEST(DoorbellTest, ReturnsAtOnceOrAtTheTimeout) {
  const auto fd = CreateSharedMemory("test", kSize);
  const auto mapping = SharedMapping::Map(fd->get(), kSize, true);
  std::atomic<uint32_t> own{0};
  for (std::atomic<uint32_t>* word :
       {&own, reinterpret_cast<std::atomic<uint32_t>*>(mapping->data())}) {
    EXPECT_FALSE(FutexWait(word, 0, 1, 1'000'000));
    EXPECT_FALSE(FutexWait(word, 0, 1, 0));
    word->store(1);
    EXPECT_TRUE(FutexWait(word, 0, 1, -1));
  }
}

// Several threads that sleep on one word, with either bit, all see it change.
TEST(DoorbellTest, WakesAllSleepersOfAWord) {
  const auto fd = CreateSharedMemory("test", kSize);
  const auto mapping = SharedMapping::Map(fd->get(), kSize, true);
  auto* word = reinterpret_cast<std::atomic<uint32_t>*>(mapping->data() + 132);
  std::vector<std::thread> sleepers;
  for (int i = 0; i < 6; ++i) {
    sleepers.emplace_back([=] {
      while (word->load() == 0) FutexWait(word, 0, i % 2 == 0 ? 1 : 2, -1);
    });
  }
  word->store(1);
  FutexWake(word, INT_MAX, ~0U);
  for (std::thread& sleeper : sleepers) sleeper.join();
}

// Another process and this one wake each other through mappings of their own.
TEST(DoorbellTest, WakesAcrossProcesses) {
  auto pair = CreateSocketPair();
  ASSERT_TRUE(pair.ok());
  SpawnOptions options = ChildOptions("doorbell");
  options.descriptors = {{pair->second.get(), 3}};
  auto child = Spawn(options);
  ASSERT_TRUE(child.ok()) << child.status();
  pair->second.reset();
  const auto memory = CreateSharedMemory("test", kSize);
  const auto mapping = SharedMapping::Map(memory->get(), kSize, true);
  const int fd = memory->get();
  ASSERT_TRUE(SendMessage(pair->first.get(), "x", 1, &fd, 1).ok());
  auto* ping = reinterpret_cast<std::atomic<uint32_t>*>(mapping->data());
  auto* pong = reinterpret_cast<std::atomic<uint32_t>*>(mapping->data() + 64);
  for (uint32_t i = 0; i < 100; ++i) {
    ping->store(i + 1);
    FutexWake(ping, 1, 1);
    while (pong->load() == i) {
      ASSERT_TRUE(FutexWait(pong, i, 2, 10'000'000'000)) << "no wake in 10 s, round " << i;
    }
  }
  EXPECT_EQ(child->WaitAndReap(-1)->code, 0);
}

}  // namespace
}  // namespace sluice::os
