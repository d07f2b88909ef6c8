// SPDX-License-Identifier: Apache-2.0
// New memory that has no contents of its own: nobody sees another's bytes in it.
//
// Nobody waits for the zeros of a new buffer either. A large one is filled when it is made, so that
// its allocation is known to succeed or fail then. The fill of a small one is put off to the next
// command of its context that may see the bytes. A first command that writes all of it takes the
// place of the fill (TakePlaceOfZeros). Whoever enqueues waits for what makes memory defined
// elsewhere: for the fills, on the context's own queue, and for such writes of other queues
// (Enqueuer::WaitForDefinedMemory).
//
// Session thread only.
#pragma once

#include <CL/cl.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "daemon/worker/cl_handle.h"

namespace sluice::worker {

struct MemoryObject;
struct ContextObject;
class CompletionLane;

// Of one context.
struct OwedZeros {
  absl::flat_hash_set<MemoryObject*> owed;  // Not filled yet.
  bool untold = false;  // Fills were enqueued that `defined` does not stand for yet.
  // The newest command of each queue that makes memory defined.
  struct Definition {
    std::shared_ptr<CompletionLane> queue;  // Its lane; null: the context's own queue.
    UniqueCl<cl_event> event;
    uint64_t number = 0;
  };
  std::vector<Definition> defined;
  uint64_t last_number = 0;

  void Define(const std::shared_ptr<CompletionLane>& queue, UniqueCl<cl_event> event);
};

// Fills the buffer with zeros on the queue, which is in order. Returns before it is done: clFinish
// says when.
cl_int EnqueueZeros(cl_command_queue queue, cl_mem buffer, size_t bytes);

// Of a new buffer, or says that they are owed.
cl_int OweZeros(MemoryObject* memory);
// Enqueues all that are owed in the context. If that fails they stay owed.
cl_int PayZeros(ContextObject* context);
// Nothing is owed of the buffer any more. It is filled, or gone, or a command of a queue in order
// that cannot fail by itself writes all of it before anything else can see it.
void TakePlaceOfZeros(MemoryObject* memory);

}  // namespace sluice::worker
