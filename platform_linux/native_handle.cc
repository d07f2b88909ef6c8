// SPDX-License-Identifier: Apache-2.0
#include "broker/os/native_handle.h"

#include <sys/mman.h>

#include <cerrno>

#include "absl/strings/str_cat.h"

namespace sluice {

NativeHandle ToNative(UniqueFd fd) { return fd.release(); }

UniqueFd FromNative(NativeHandle handle) { return DuplicateFd(handle); }

void CloseNative(NativeHandle handle) { const UniqueFd closed(handle); }

absl::StatusOr<void*> MapNative(NativeHandle handle, uint64_t size_bytes, bool writable) {
  const int protection = PROT_READ | (writable ? PROT_WRITE : 0);
  void* mapped = ::mmap(nullptr, size_bytes, protection, MAP_SHARED, handle, 0);
  if (mapped != MAP_FAILED) return mapped;
  const std::string what = absl::StrCat("mapping ", size_bytes, " bytes");
  if (errno == ENOMEM) return absl::ResourceExhaustedError(what + ": no memory");
  return absl::ErrnoToStatus(errno, what);
}

void UnmapNative(void* address, uint64_t size_bytes) { ::munmap(address, size_bytes); }

}  // namespace sluice
