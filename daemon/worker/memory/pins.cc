// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/memory/pins.h"

namespace sluice::worker {

void Pins::Pin(const ContextObject& context, const HeapSpan& span) {
  const std::pair<cl_platform_id, uint32_t> key(context.devices[0]->platform, span.segment);
  {
    absl::MutexLock lock(&mu_);
    if (!pins_.try_emplace(key).second) return;
  }
  const HeapSpan segment = heap_->WholeSegment(span.segment);
  cl_int status = CL_SUCCESS;
  UniqueCl<cl_mem> pin(cl().clCreateBuffer(context.handle.get(),
                                           CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, segment.size,
                                           segment.data, &status));
  if (status != CL_SUCCESS) return;  // Slower, not wrong.
  absl::MutexLock lock(&mu_);
  pins_[key] = std::move(pin);
}

}  // namespace sluice::worker
