// SPDX-License-Identifier: Apache-2.0
// Shared virtual memory, coarse-grained: memory of the session's heap in a segment that client and
// worker map at the same address. Where that is not possible (a remote session, a driver without
// it) the device reports no SVM, and all of this answers as OpenCL 3.0 says for such a device.
// A buffer over it (CL_MEM_USE_HOST_PTR) has it for its storage; an image over it is filled from it
// and shows it by maps, as one over other memory.
//
// The table of allocations is the process's: an address says by itself which allocation it belongs
// to. Thread-safe.
#pragma once

#include <CL/cl.h>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace sluice::client {

class Context;

// True if some device of the context has SVM, and the session can share addresses.
bool SupportsSvm(const Context& context);
// True if the pointer lies in an SVM allocation of the context.
bool IsSvmPointer(const Context& context, const void* pointer);
// Where in which one, and how much of it follows.
struct SvmPlace {
  uint64_t svm_id;
  size_t offset;
  size_t bytes;
};
std::optional<SvmPlace> FindSvm(const Context& context, const void* pointer);

}  // namespace sluice::client
