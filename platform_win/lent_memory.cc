// SPDX-License-Identifier: Apache-2.0
#include "broker/os/lent_memory.h"

#include <windows.h>

#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "broker/os/shared_memory.h"
#include "platform_win/handles/section.h"

namespace sluice::os {
namespace {

absl::StatusOr<UniqueFd> Lend(int fd, DWORD access) {
  const std::shared_ptr<HandleObject> object = FindDescriptor(fd, HandleKind::kSection);
  if (object == nullptr) return absl::InvalidArgumentError("the descriptor is no section");
  OwnedHandle lent = DuplicateHandleHere(object->handle(), access);
  if (!lent.valid()) return WindowsStatus(::GetLastError(), "duplicating shared memory");
  return AddDescriptor(std::make_shared<Section>(std::move(lent), Section::Bells()));
}

absl::StatusOr<UniqueFd> LendGraphics(int fd) {
  const std::shared_ptr<HandleObject> object = FindDescriptor(fd, HandleKind::kGraphics);
  if (object == nullptr) return absl::InvalidArgumentError("the descriptor is none of Direct3D's");
  return AddDescriptor(object);  // Each message duplicates for its receiver.
}

constexpr ACCESS_MASK kMoreThanReading = SECTION_MAP_WRITE | SECTION_EXTEND_SIZE | WRITE_DAC |
                                         WRITE_OWNER | GENERIC_WRITE | GENERIC_ALL |
                                         MAXIMUM_ALLOWED;

// True if this entry lets anybody do more than read; sets `*owner` if it limits the owner's rights.
bool GivesMore(const ACE_HEADER* entry, bool* owner) {
  if ((entry->AceFlags & INHERIT_ONLY_ACE) != 0) return false;  // It concerns other objects.
  if (entry->AceType == ACCESS_DENIED_ACE_TYPE) return false;
  if (entry->AceType != ACCESS_ALLOWED_ACE_TYPE) return true;  // Of a kind that is not examined.
  SID owner_rights = {
      SID_REVISION, 1, SECURITY_CREATOR_SID_AUTHORITY, {SECURITY_CREATOR_OWNER_RIGHTS_RID}};
  const auto* allowed = reinterpret_cast<const ACCESS_ALLOWED_ACE*>(entry);
  if (::EqualSid(const_cast<DWORD*>(&allowed->SidStart), &owner_rights)) *owner = true;
  return (allowed->Mask & kMoreThanReading) != 0;
}

// True if no account can turn a handle for reading into one for writing: the access list gives
// nobody more, and also takes the right to change the list from the owner. This examines the list
// instead of trying, since a reader is another account than this process's, or the owner. False
// also if the list cannot be read.
bool ReadersStayReaders(HANDLE section) {
  const OwnedHandle asking = DuplicateHandleHere(section, READ_CONTROL);
  if (!asking.valid()) return false;
  DWORD bytes = 0;
  ::GetKernelObjectSecurity(asking.get(), DACL_SECURITY_INFORMATION, nullptr, 0, &bytes);
  std::vector<uint64_t> memory(bytes / sizeof(uint64_t) + 1);
  auto* descriptor = reinterpret_cast<SECURITY_DESCRIPTOR*>(memory.data());
  BOOL present = FALSE;
  BOOL defaulted = FALSE;
  ACL* list = nullptr;
  if (!::GetKernelObjectSecurity(asking.get(), DACL_SECURITY_INFORMATION, descriptor,
                                 static_cast<DWORD>(memory.size() * sizeof(uint64_t)), &bytes) ||
      !::GetSecurityDescriptorDacl(descriptor, &present, &list, &defaulted)) {
    return false;
  }
  if (!present || list == nullptr) return false;  // Everybody may do everything.
  bool owner = false;
  for (DWORD i = 0; i < list->AceCount; ++i) {
    void* entry = nullptr;
    if (!::GetAce(list, i, &entry)) return false;
    if (GivesMore(static_cast<const ACE_HEADER*>(entry), &owner)) return false;
  }
  return owner;
}

}  // namespace

absl::StatusOr<UniqueFd> CreateLentMemory(const char* name, uint64_t size_bytes) {
  return CreateSharedMemory(name, size_bytes, Sealing::kMore);
}

absl::StatusOr<LentKind> CheckLentMemory(int fd, uint64_t size_bytes) {
  const std::shared_ptr<HandleObject> object = FindDescriptor(fd, HandleKind::kSection);
  if (object == nullptr) return absl::InvalidArgumentError("the descriptor is no section");
  const absl::StatusOr<SectionFacts> facts = DescribeSection(object->handle());
  if (!facts.ok()) return facts.status();
  if (!facts->committed) {
    return absl::InvalidArgumentError("the section is of a file, or is only reserved");
  }
  if (facts->size_bytes < size_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the memory has ", facts->size_bytes, " bytes, its shape needs ", size_bytes));
  }
  return LentKind::kMemfd;
}

absl::Status CheckOpaqueMemory(int fd) {
  if (FindDescriptor(fd, HandleKind::kGraphics) != nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError("the descriptor is none of Direct3D's");
}

absl::StatusOr<uint64_t> LentMemoryBytes(int fd) {
  const std::shared_ptr<HandleObject> object = FindDescriptor(fd, HandleKind::kSection);
  if (object == nullptr) return absl::InvalidArgumentError("the descriptor is no section");
  const absl::StatusOr<SectionFacts> facts = DescribeSection(object->handle());
  if (!facts.ok()) return facts.status();
  return facts->size_bytes;
}

// A handle's rights are fixed when it is made, whoever owns the section.
void TakeOverLentMemory(int, bool) {}

absl::Status OpenOwnMemory(StrangersFds*) { return absl::OkStatus(); }

// A section's views are nobody's handles, so who has one cannot be counted.
RemainingHolders::RemainingHolders(StrangersFds) {}
bool RemainingHolders::Any() const { return false; }

absl::StatusOr<UniqueFd> LendForWriting(int fd, LentKind kind) {
  if (kind == LentKind::kOpaque) return LendGraphics(fd);
  const std::shared_ptr<HandleObject> object = FindDescriptor(fd, HandleKind::kSection);
  if (object == nullptr) return absl::InvalidArgumentError("the descriptor is no section");
  const absl::StatusOr<SectionFacts> facts = DescribeSection(object->handle());
  if (!facts.ok()) return facts.status();
  if (!facts->writable) {
    return absl::FailedPreconditionError("this memory was imported for reading only");
  }
  return Lend(fd, SECTION_MAP_READ | SECTION_MAP_WRITE | SECTION_QUERY);
}

// Sections that we have made pass (shared_memory.cc). A client's section has whatever access list
// it was made with.
absl::StatusOr<UniqueFd> LendForReading(int fd, LentKind kind, uid_t, bool trusted) {
  if (kind == LentKind::kOpaque && !trusted) {
    return absl::FailedPreconditionError(
        "handles of Direct3D are for writing, too: only trusted readers can have them "
        "(trust_readers)");
  }
  if (kind == LentKind::kOpaque) return LendGraphics(fd);
  absl::StatusOr<UniqueFd> lent = Lend(fd, SECTION_MAP_READ | SECTION_QUERY);
  if (!lent.ok() || trusted) return lent;
  if (ReadersStayReaders(FindDescriptor(fd)->handle())) return lent;
  return absl::FailedPreconditionError(
      "a reader could make a handle for writing of this section, since its access list allows it: "
      "import it with SLUICE_TRUST_READERS, or make it with a list whose one entry gives OWNER "
      "RIGHTS (S-1-3-4) nothing");
}

}  // namespace sluice::os
