// SPDX-License-Identifier: Apache-2.0
#include "broker/allocator/memory_maker.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/os/lent_memory.h"

namespace sluice {
namespace {

constexpr char kInstead[] = "; a section can be had: SLUICE_BACKING_MEMFD, or SLUICE_BACKING_ANY";

absl::StatusOr<MadeMemory> MakeSection(uint64_t size_bytes) {
  absl::StatusOr<UniqueFd> section = CreateLentMemory("sluice-resource", size_bytes);
  if (!section.ok()) return section.status();
  MadeMemory memory;
  memory.fds.push_back(*std::move(section));
  memory.allocation_bytes = size_bytes;
  return memory;
}

}  // namespace

absl::StatusOr<MadeMemory> MemoryMaker::Make(ResourceBacking backing, uint64_t size_bytes) {
  switch (backing) {
    case ResourceBacking::kMemfd:
      return MakeSection(size_bytes);
    case ResourceBacking::kDmaBuf:
      return absl::UnimplementedError(absl::StrCat("Windows has no dma-bufs", kInstead));
    case ResourceBacking::kVulkan:
      return absl::UnimplementedError(
          absl::StrCat("the daemon makes no Vulkan memory on Windows", kInstead));
    case ResourceBacking::kGralloc:
      return absl::UnimplementedError(absl::StrCat("Windows has no gralloc handles", kInstead));
    case ResourceBacking::kAny:
    case ResourceBacking::kImported:
      break;
  }
  return absl::UnimplementedError(
      absl::StrCat("there is no backing ", static_cast<uint32_t>(backing)));
}

}  // namespace sluice
