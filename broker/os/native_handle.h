// SPDX-License-Identifier: Apache-2.0
//
// Descriptors as programs outside of Sluice have them: on Linux the same number; on Windows a
// HANDLE, since each of our libraries there has descriptors of its own (a table,
// platform_win/handles/handle_table.h). Thread-safe.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "broker/os/scoped_handle.h"

namespace sluice::os {

#ifdef _WIN32
using NativeHandle = void*;
inline constexpr NativeHandle kNoNativeHandle = nullptr;
#else
using NativeHandle = int;
inline constexpr NativeHandle kNoNativeHandle = -1;
#endif

// The descriptor's own handle, which is the caller's; kNoNativeHandle if there is none to be had.
NativeHandle ToNative(UniqueFd fd);

// Another descriptor of what a program has; the handle stays the program's. Invalid if there is no
// such handle, or Sluice has no use for its kind.
UniqueFd FromNative(NativeHandle handle);
// The reason, for messages, why FromNative refuses a handle.
const char* WhyNotFromNative();

void CloseNative(NativeHandle handle);

// Maps `size_bytes` of shared memory, from `offset` on. The caller has checked what others may do
// to it.
absl::StatusOr<void*> MapNative(NativeHandle handle, uint64_t offset, uint64_t size_bytes,
                                bool writable);
void UnmapNative(void* address, uint64_t size_bytes);

}  // namespace sluice::os
