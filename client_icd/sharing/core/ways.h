// SPDX-License-Identifier: Apache-2.0
// The ways that a shared object's bytes can go and that may turn out to be impossible. Each makes
// the worker's memory for a memory object, or says why it cannot, for the log; the core then takes
// the next (../README.md). Block for a round trip. Thread-safe: no state.
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "client_icd/objects/memory.h"
#include "client_icd/sharing/core/native_object.h"
#include "client_icd/sharing/core/shared_object.h"

namespace sluice::client::sharing {

// True if SLUICE_SHARING names this: a way, or for tests how a shadow is worked with: `shader`
// (copies by shaders also on a CPU, where they are slow), `no-shader`, `semaphores` (of buffers
// too), `no-semaphores`.
bool SharingNames(std::string_view word);

// The native object's own memory, handed over as a descriptor (import.cc).
absl::Status MakeImported(MemObject* memory, SharedObject* shared);

// The same for memory that was exported otherwise, a shadow of the native side's making: `memory`
// may be the buffer beside the shared object's image.
absl::Status ImportExported(MemObject* memory, const ExportedMemory& exported,
                            SharedObject* shared);

}  // namespace sluice::client::sharing
