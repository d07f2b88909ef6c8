// SPDX-License-Identifier: Apache-2.0
// Where the bytes of a memory object are, beside or instead of the driver's own memory. Constant
// once the object is in the session's table; what it holds lives as long as the object.
#pragma once

#include <memory>
#include <variant>

#include "daemon/worker/memory/heap.h"

namespace sluice::worker {

class Mirror;
class ShadowSemaphores;
struct ShadowBuffer;

// Wherever the driver keeps them.
struct InDriver {};

// In memory that the client sees (CPU devices). The place of an object that is made from another is
// a part of that one's; of a buffer over shared virtual memory, a part of that.
struct InHeap {
  HeapSpan span;
  std::shared_ptr<const HeapSpan> held = nullptr;  // The whole span; null if the parent has it.
  Heap* heap = nullptr;                            // Of `held`, if that is this object's alone.
};

// In the driver's memory, with a copy for mapping (mirrors.h). Buffers that are no part of another.
struct WithMirror {
  std::shared_ptr<const Mirror> mirror;
};

// In memory that the client's graphics API opens as well (shadows.h).
struct InShadow {
  std::shared_ptr<const ShadowBuffer> buffer;
  std::shared_ptr<const ShadowSemaphores> semaphores =
      nullptr;  // Null: none in common with the client.
};

using Placement = std::variant<InDriver, InHeap, WithMirror, InShadow>;

}  // namespace sluice::worker
