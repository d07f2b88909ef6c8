// SPDX-License-Identifier: Apache-2.0
// Shadow buffers (client_icd/sharing/README.md, "Ways"): buffers of the driver in memory that the
// client's graphics API opens as well. The memory is Vulkan's (daemon/helpers/external_memory.h),
// on the device that OpenCL uses. A driver that works in the host's memory (a CPU device) is given
// the mapping. Any other imports the descriptor (cl_khr_external_memory_opaque_fd), and is told of
// each change of hands; it may also have semaphores in common with the client
// (shadow_semaphores.h).
//
// Vulkan is opened by the first shadow of the process and kept, like the driver. Called on the
// session thread, which the first one holds up for as long as the making of a context does; memory
// may be let go on a driver's thread.
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "daemon/helpers/external_memory.h"
#include "daemon/worker/objects.h"

namespace sluice::worker {

// The memory of a shadow buffer, and where it is.
struct ShadowBuffer {
  std::shared_ptr<const os::ExternalMemoryDevice> device;
  std::shared_ptr<const os::ExternalMemory> memory;
};

// Makes `memory`, whose context and size are set, a buffer of zeros in exportable memory: sets its
// handle, placement and hands. The error says what is missing, for a log.
absl::Status MakeShadowBuffer(cl_mem_flags flags, MemoryObject* memory);

}  // namespace sluice::worker
