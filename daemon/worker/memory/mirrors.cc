// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/memory/mirrors.h"

#include "proto/handle_messages.h"

namespace sluice::worker {

Mirrors::Mirrors(int handle_channel, uint64_t max_bytes)
    : heap_(handle_channel, max_bytes, wire::kFirstMirrorSegment, 0, Heap::Freed::kKept,
            kPinnedSegmentBytes),
      pins_(&heap_) {}

std::shared_ptr<const Mirror> Mirrors::Make(const ContextObject& context, uint64_t size) {
  const auto span = heap_.Allocate(size);
  if (!span.ok()) return nullptr;
  pins_.Pin(context, *span);
  return std::make_shared<const Mirror>(&heap_, *span);
}

}  // namespace sluice::worker
