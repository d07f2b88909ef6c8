// SPDX-License-Identifier: Apache-2.0
#include "broker/os/shared_memory.h"

#include <windows.h>
#include <winternl.h>

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "platform_win/handles/mappings.h"
#include "platform_win/handles/section.h"

// Not in mingw's winternl.h.
extern "C" NTSTATUS NTAPI NtQuerySection(HANDLE, int, PVOID, SIZE_T, PSIZE_T);

namespace sluice::os {
namespace {

constexpr uint64_t kPageBytes = 4096;
constexpr DWORD kReadAccess = SECTION_MAP_READ | SECTION_QUERY;

// A sealed copy has its size inside, since a section's size is a number of pages.
struct CopyHeader {
  uint64_t magic;
  uint64_t size_bytes;
};
constexpr uint64_t kCopyMagic = 0x59504f434c53;  // "SLCOPY"

struct SectionBasic {
  PVOID base;
  ULONG attributes;
  LARGE_INTEGER size;
};
struct ObjectBasic {
  ULONG attributes;
  ACCESS_MASK granted_access;
  ULONG counts[2];
  ULONG reserved[10];
};

// An access list that gives nobody anything. Without it, whoever has a handle for reading could
// duplicate it into one for writing. Its one entry takes from the owner the right to change the
// list.
class EmptyAccessList {
 public:
  EmptyAccessList() {
    SID owner_rights = {
        SID_REVISION, 1, SECURITY_CREATOR_SID_AUTHORITY, {SECURITY_CREATOR_OWNER_RIGHTS_RID}};
    auto* list = reinterpret_cast<ACL*>(list_);
    ::InitializeAcl(list, sizeof(list_), ACL_REVISION);
    ::AddAccessAllowedAce(list, ACL_REVISION, 0, &owner_rights);
    ::InitializeSecurityDescriptor(&descriptor_, SECURITY_DESCRIPTOR_REVISION);
    ::SetSecurityDescriptorDacl(&descriptor_, TRUE, list, FALSE);
    attributes_ = {sizeof(attributes_), &descriptor_, FALSE};
  }
  SECURITY_ATTRIBUTES* get() { return &attributes_; }

 private:
  alignas(ACL) char list_[sizeof(ACL) + sizeof(ACCESS_ALLOWED_ACE) + sizeof(SID)];
  SECURITY_DESCRIPTOR descriptor_;
  SECURITY_ATTRIBUTES attributes_;
};

absl::StatusOr<OwnedHandle> CreateSection(const char* name, uint64_t size_bytes) {
  EmptyAccessList security;
  OwnedHandle section(::CreateFileMappingW(
      INVALID_HANDLE_VALUE, security.get(), PAGE_READWRITE | SEC_COMMIT,
      static_cast<DWORD>(size_bytes >> 32), static_cast<DWORD>(size_bytes & 0xffffffff), nullptr));
  if (!section.valid()) {
    return WindowsStatus(::GetLastError(),
                         absl::StrCat("shared memory ", name, " of ", size_bytes, " bytes"));
  }
  return section;
}

absl::StatusOr<std::shared_ptr<const Section>> FindSection(int fd) {
  std::shared_ptr<HandleObject> object = FindDescriptor(fd, HandleKind::kSection);
  if (object == nullptr) return absl::InvalidArgumentError("descriptor is not shared memory");
  return std::static_pointer_cast<const Section>(std::move(object));
}

uint64_t RoundUp(uint64_t size) { return (size + kPageBytes - 1) / kPageBytes * kPageBytes; }

}  // namespace

absl::StatusOr<SectionFacts> DescribeSection(HANDLE section) {
  SectionBasic basic = {};
  ObjectBasic object = {};
  if (::NtQuerySection(section, /*SectionBasicInformation=*/0, &basic, sizeof(basic), nullptr) !=
          0 ||
      ::NtQueryObject(section, ObjectBasicInformation, &object, sizeof(object), nullptr) != 0) {
    return absl::InvalidArgumentError("descriptor is not shared memory that can be asked about");
  }
  SectionFacts facts;
  facts.size_bytes = static_cast<uint64_t>(basic.size.QuadPart);
  facts.committed = (basic.attributes & SEC_COMMIT) != 0 &&
                    (basic.attributes & (SEC_FILE | SEC_IMAGE | SEC_RESERVE)) == 0;
  facts.writable = (object.granted_access & SECTION_MAP_WRITE) != 0;
  return facts;
}

absl::StatusOr<UniqueFd> CreateSharedMemory(const char* name, size_t size_bytes, Sealing) {
  absl::StatusOr<OwnedHandle> section = CreateSection(name, size_bytes);
  if (!section.ok()) return section.status();
  Section::Bells bells;
  for (OwnedHandle& bell : bells) {
    bell = OwnedHandle(::CreateEventW(nullptr, /*bManualReset=*/FALSE, FALSE, nullptr));
    if (!bell.valid()) return WindowsStatus(::GetLastError(), "making a doorbell");
  }
  return AddDescriptor(std::make_shared<Section>(*std::move(section), std::move(bells)));
}

absl::Status VerifySharedMemory(int fd, size_t expected_size_bytes) {
  const auto section = FindSection(fd);
  if (!section.ok()) return section.status();
  const absl::StatusOr<SectionFacts> facts = DescribeSection((*section)->handle());
  if (!facts.ok()) return facts.status();
  if (!facts->committed) {
    return absl::InvalidArgumentError("shared memory of a file, or that is only reserved");
  }
  // Exact where the system keeps the number of bytes, else in pages.
  if (facts->size_bytes != expected_size_bytes &&
      facts->size_bytes != RoundUp(expected_size_bytes)) {
    return absl::InvalidArgumentError(absl::StrCat("shared memory has ", facts->size_bytes,
                                                   " bytes, expected ", expected_size_bytes));
  }
  return absl::OkStatus();
}

absl::StatusOr<UniqueFd> CreateSealedCopy(const char* name, const void* data, size_t size_bytes) {
  absl::StatusOr<OwnedHandle> section = CreateSection(name, sizeof(CopyHeader) + size_bytes);
  if (!section.ok()) return section.status();
  void* view = ::MapViewOfFile(section->get(), FILE_MAP_WRITE, 0, 0, 0);
  if (view == nullptr) return WindowsStatus(::GetLastError(), "mapping shared memory");
  const CopyHeader header = {kCopyMagic, size_bytes};
  std::memcpy(view, &header, sizeof(header));
  std::memcpy(static_cast<char*>(view) + sizeof(header), data, size_bytes);
  ::UnmapViewOfFile(view);
  // From here there is no handle for writing, and none can be made.
  OwnedHandle read_only = DuplicateHandleHere(section->get(), kReadAccess);
  if (!read_only.valid()) return WindowsStatus(::GetLastError(), "sealing shared memory");
  return AddDescriptor(std::make_shared<Section>(std::move(read_only), Section::Bells()));
}

absl::StatusOr<std::string> ReadSealedCopy(int fd, size_t max_bytes) {
  const auto section = FindSection(fd);
  if (!section.ok()) return section.status();
  const absl::StatusOr<SectionFacts> facts = DescribeSection((*section)->handle());
  if (!facts.ok()) return facts.status();
  if (facts->writable || !facts->committed || facts->size_bytes < sizeof(CopyHeader)) {
    return absl::InvalidArgumentError("shared memory that could still change, or is no copy");
  }
  void* view = ::MapViewOfFile((*section)->handle(), FILE_MAP_READ, 0, 0, 0);
  if (view == nullptr) return WindowsStatus(::GetLastError(), "mapping shared memory");
  CopyHeader header;
  std::memcpy(&header, view, sizeof(header));
  absl::StatusOr<std::string> bytes;
  if (header.magic != kCopyMagic || header.size_bytes > facts->size_bytes - sizeof(header)) {
    bytes = absl::InvalidArgumentError("shared memory that is no sealed copy");
  } else if (header.size_bytes > max_bytes) {
    bytes = absl::InvalidArgumentError(absl::StrCat("sealed memory has ", header.size_bytes,
                                                    " bytes, at most ", max_bytes, " are taken"));
  } else {
    bytes = std::string(static_cast<const char*>(view) + sizeof(header), header.size_bytes);
  }
  ::UnmapViewOfFile(view);
  return bytes;
}

SharedMapping::SharedMapping(SharedMapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

SharedMapping& SharedMapping::operator=(SharedMapping&& other) noexcept {
  if (this != &other) {
    const SharedMapping old(std::exchange(data_, std::exchange(other.data_, nullptr)),
                            std::exchange(size_, std::exchange(other.size_, 0)));
  }
  return *this;
}

void ZeroSharedMemory(int, uint8_t* data, uint64_t, uint64_t size) { std::memset(data, 0, size); }

SharedMapping::~SharedMapping() {
  if (data_ == nullptr) return;
  ForgetMapping(data_);
  ::UnmapViewOfFile(data_);
}

absl::StatusOr<SharedMapping> SharedMapping::Map(int fd, size_t size, bool writable,
                                                 void* fixed_address) {
  auto section = FindSection(fd);
  if (!section.ok()) return section.status();
  const DWORD access = writable ? FILE_MAP_READ | FILE_MAP_WRITE : FILE_MAP_READ;
  void* view = ::MapViewOfFileEx((*section)->handle(), access, 0, 0, size, fixed_address);
  if (view == nullptr) {
    const DWORD error = ::GetLastError();
    if (fixed_address != nullptr && error == ERROR_INVALID_ADDRESS)
      return absl::AlreadyExistsError("that address is in use in this process");
    return WindowsStatus(error, absl::StrCat("mapping ", size, " bytes of shared memory"));
  }
  NoteMapping(view, size, *std::move(section));
  return SharedMapping(static_cast<uint8_t*>(view), size);
}

absl::StatusOr<OwnersMemory> CreateOwnersMemory(const char*, size_t) {
  return absl::UnimplementedError("Windows: such sections are not made yet");
}

}  // namespace sluice::os
