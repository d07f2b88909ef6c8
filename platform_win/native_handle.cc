// SPDX-License-Identifier: Apache-2.0
#include "broker/os/native_handle.h"

#include <windows.h>

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "platform_win/handles/section.h"

namespace sluice::os {

NativeHandle ToNative(UniqueFd fd) {
  const std::shared_ptr<HandleObject> object = FindDescriptor(fd.get());
  return object == nullptr ? kNoNativeHandle : DuplicateHandleHere(object->handle()).release();
}

UniqueFd FromNative(NativeHandle handle) {
  OwnedHandle own = DuplicateHandleHere(handle);
  if (!own.valid() || !DescribeSection(own.get()).ok()) return UniqueFd();
  return AddDescriptor(std::make_shared<Section>(std::move(own), Section::Bells()));
}

const char* WhyNotFromNative() {
  return "is none, is no shared memory, or lacks SECTION_QUERY, which the memory's size is asked "
         "with";
}

void CloseNative(NativeHandle handle) { const OwnedHandle closed(handle); }

// Views begin at multiples of 64 KiB; the system refuses other offsets.
absl::StatusOr<void*> MapNative(NativeHandle handle, uint64_t offset, uint64_t size_bytes,
                                bool writable) {
  void* view = ::MapViewOfFile(handle, writable ? FILE_MAP_READ | FILE_MAP_WRITE : FILE_MAP_READ,
                               static_cast<DWORD>(offset >> 32), static_cast<DWORD>(offset),
                               static_cast<SIZE_T>(size_bytes));
  if (view != nullptr) return view;
  return WindowsStatus(::GetLastError(), absl::StrCat("mapping ", size_bytes, " bytes"));
}

void UnmapNative(void* address, uint64_t) { ::UnmapViewOfFile(address); }

}  // namespace sluice::os
