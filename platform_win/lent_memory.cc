// SPDX-License-Identifier: Apache-2.0
#include "broker/os/lent_memory.h"

#include "absl/strings/str_cat.h"
#include "broker/os/shared_memory.h"
#include "platform_win/section.h"

namespace sluice {
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

// What a handle may do is fixed when it is made, whoever owns the section.
void TakeOverLentMemory(int, bool) {}

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

// Of a section that we have made, nobody can make more of such a handle (shared_memory.cc). One
// that a client brought has whatever access list it was made with: what this process may make of
// the handle, a reader may be able to as well.
absl::StatusOr<UniqueFd> LendForReading(int fd, LentKind kind, uid_t, bool trusted) {
  if (kind == LentKind::kOpaque && !trusted) {
    return absl::FailedPreconditionError(
        "handles of Direct3D are for writing, too: only trusted readers can have them "
        "(trust_readers)");
  }
  if (kind == LentKind::kOpaque) return LendGraphics(fd);
  absl::StatusOr<UniqueFd> lent = Lend(fd, SECTION_MAP_READ | SECTION_QUERY);
  if (!lent.ok() || trusted) return lent;
  const OwnedHandle more =
      DuplicateHandleHere(FindDescriptor(lent->get())->handle(), SECTION_MAP_WRITE);
  if (!more.valid()) return lent;
  return absl::FailedPreconditionError(
      "a reader could make a handle for writing of this section, since its access list allows it: "
      "import it with SLUICE_TRUST_READERS, or make it with an empty list");
}

}  // namespace sluice
