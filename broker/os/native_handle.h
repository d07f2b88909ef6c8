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
// such handle, or it is of no kind that Sluice has to do with.
UniqueFd FromNative(NativeHandle handle);
// What is wrong with a handle of which FromNative makes none.
const char* WhyNotFromNative();

void CloseNative(NativeHandle handle);

// `size_bytes` of shared memory, from `offset` on. What others may do to it is not looked at: the
// caller has.
absl::StatusOr<void*> MapNative(NativeHandle handle, uint64_t offset, uint64_t size_bytes,
                                bool writable);
void UnmapNative(void* address, uint64_t size_bytes);

}  // namespace sluice::os
