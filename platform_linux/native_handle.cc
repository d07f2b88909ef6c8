// SPDX-License-Identifier: Apache-2.0
#include "broker/os/native_handle.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"

namespace sluice::os {

namespace {

uint64_t PageBytes() {
  static const auto bytes = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

}  // namespace

NativeHandle ToNative(UniqueFd fd) { return fd.release(); }

UniqueFd FromNative(NativeHandle handle) { return DuplicateFd(handle); }

const char* WhyNotFromNative() { return "is no open descriptor"; }

void CloseNative(NativeHandle handle) { const UniqueFd closed(handle); }

// Mappings begin at a page; UnmapNative rounds the address down in the same way.
absl::StatusOr<void*> MapNative(NativeHandle handle, uint64_t offset, uint64_t size_bytes,
                                bool writable) {
  const uint64_t before = offset % PageBytes();
  const int protection = PROT_READ | (writable ? PROT_WRITE : 0);
  void* mapped = ::mmap(nullptr, before + size_bytes, protection, MAP_SHARED, handle,
                        static_cast<off_t>(offset - before));
  if (mapped != MAP_FAILED) return static_cast<uint8_t*>(mapped) + before;
  const std::string what = absl::StrCat("mapping ", size_bytes, " bytes");
  if (errno == ENOMEM) return absl::ResourceExhaustedError(what + ": no memory");
  return absl::ErrnoToStatus(errno, what);
}

void UnmapNative(void* address, uint64_t size_bytes) {
  const uint64_t before = reinterpret_cast<uintptr_t>(address) % PageBytes();
  ::munmap(static_cast<uint8_t*>(address) - before, before + size_bytes);
}

}  // namespace sluice::os
