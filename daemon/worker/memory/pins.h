// SPDX-License-Identifier: Apache-2.0
// Keeps memory of the pinned heap registered with a driver of a GPU, so that it moves data from and
// to there at the rate of the bus. That is 54 GB/s both ways on an H200, where memory it does not
// know takes 9 and 18. The way that OpenCL has for it is a buffer with CL_MEM_USE_HOST_PTR over the
// memory; it need not be mapped. A driver that does not pin by that does no harm.
//
// Whole segments only, before anything else of the driver's lies in them: a buffer over a part
// would be all that a later registration of the whole pins. Pinned memory must keep its pages: it
// is never given back to the kernel (Heap::Freed::kKept).
//
// One registration serves all contexts of a platform, and keeps the context it was made with.
// Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "daemon/worker/cl_handle.h"
#include "daemon/worker/memory/heap.h"
#include "daemon/worker/objects.h"

namespace sluice::worker {

// Pinning takes the driver 0.4 ms for each MiB that was never touched: no more than staging needs.
inline constexpr uint64_t kPinnedSegmentBytes = 32 << 20;

class Pins {
 public:
  explicit Pins(const Heap* heap) : heap_(heap) {}

  // Pins the segment of `span`, unless that has been tried. The first time it takes the driver
  // some milliseconds, mostly for touching the pages.
  void Pin(const ContextObject& context, const HeapSpan& span);

 private:
  const Heap* const heap_;
  absl::Mutex mu_;
  std::map<std::pair<cl_platform_id, uint32_t>, UniqueCl<cl_mem>> pins_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sluice::worker
