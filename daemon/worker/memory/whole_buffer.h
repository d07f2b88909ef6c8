// SPDX-License-Identifier: Apache-2.0
// Finds a buffer's bytes for a command. Some drivers crash when they copy rectangles, or from and
// to images, and a buffer is a sub-buffer, wherever that begins
// (DriverQuirks::crashes_on_sub_buffers). They are given the buffer that this is a part of, and the
// part's origin added to the command's offset. The client has checked the command against the part.
// Of a copy between two parts of one buffer with unlike pitches they then say CL_INVALID_VALUE, as
// of any within one buffer. Session thread only.
#pragma once

#include "daemon/worker/driver.h"
#include "daemon/worker/queues/queue.h"

namespace sluice::worker {

struct BufferPlace {
  cl_mem handle;
  size_t offset;  // Of the buffer's first byte.
};

inline BufferPlace PlaceOf(const MemoryObject& buffer, const QueueObject& queue) {
  const bool is_part = buffer.parent != nullptr && !buffer.is_image && !buffer.parent->is_image;
  if (!queue.device->quirks.crashes_on_sub_buffers || !is_part) return {buffer.handle.get(), 0};
  size_t origin = 0;
  const cl_int status =
      cl().clGetMemObjectInfo(buffer.handle.get(), CL_MEM_OFFSET, sizeof(origin), &origin, nullptr);
  if (status != CL_SUCCESS) return {buffer.handle.get(), 0};
  return {buffer.parent->handle.get(), origin};
}

}  // namespace sluice::worker
