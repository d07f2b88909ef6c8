// SPDX-License-Identifier: Apache-2.0
// Mirrors: what the application sees of a GPU's CL_MEM_ALLOC_HOST_PTR buffer while it is mapped. A
// mirror is shared with the client and registered with the driver (pins.h), so that a map or unmap
// is one move of the driver's at the rate of the bus. So is any read or write whose host side the
// application has put there, which is what such buffers are made for.
//
// Of a heap of their own: staging must find room whatever the application keeps. A mirror lasts as
// long as its buffer and as the commands that move its bytes. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "daemon/worker/memory/heap.h"
#include "daemon/worker/memory/pins.h"
#include "daemon/worker/objects.h"

namespace sluice::worker {

class Mirror {
 public:
  Mirror(Heap* heap, const HeapSpan& span) : heap_(heap), span_(span) {}
  ~Mirror() { heap_->Free(span_); }
  Mirror(const Mirror&) = delete;
  Mirror& operator=(const Mirror&) = delete;

  const HeapSpan& span() const { return span_; }

 private:
  Heap* const heap_;
  const HeapSpan span_;
};

class Mirrors {
 public:
  Mirrors(int handle_channel, uint64_t max_bytes);

  // Null if there is no memory for it. Its bytes are the session's own, but anything.
  std::shared_ptr<const Mirror> Make(const ContextObject& context, uint64_t size);

 private:
  Heap heap_;
  Pins pins_;
};

}  // namespace sluice::worker
