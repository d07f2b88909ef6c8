// SPDX-License-Identifier: Apache-2.0
// The device shadow (design section 9): memory that the worker makes and the native API opens as
// well. A buffer's memory object is the shadow itself; an image has a buffer beside it, which the
// worker copies to and from on the device. Local sessions only: the memory's descriptor comes over
// the handle channel.
//
//   acquire:  CopyToShadow on the native thread -> TakeShadow: the worker acquires, [buffer ->
//   image] release:  GiveShadow: [image -> buffer], the worker releases -> CopyFromShadow on the
//   native thread
//
// Thread-safe: no state.
#pragma once

#include <CL/cl.h>

#include "absl/status/status.h"
#include "client_icd/event.h"
#include "client_icd/memory.h"
#include "client_icd/queue.h"
#include "client_icd/sharing/native_object.h"
#include "client_icd/sharing/shared_object.h"

namespace sluice::sharing {

// The memory object's bytes, tightly packed.
uint64_t PackedBytes(const MemObject& memory);

// Makes the worker's side of `memory` with a shadow that the native object has taken: sets the way.
// An error says why not, for the log; nothing is left of the attempt, and another way can be gone.
absl::Status MakeShadowed(MemObject* memory, SharedObject* shared);

// Posts what follows CopyToShadow, behind `after`. `last`: when OpenCL may use the memory object.
cl_int PostTakeShadow(Queue* queue, const Ref<MemObject>& memory, const Event& after,
                      Ref<Event>* last);

// Posts what goes before CopyFromShadow, behind the wait list and the end of the acquire (null: it
// has ended). `then` runs when it has ended, unless this fails.
cl_int PostGiveShadow(Queue* queue, const Ref<MemObject>& memory, bool written,
                      const Event* acquired, cl_uint num_events, const cl_event* wait_list,
                      Event::Hook then);

}  // namespace sluice::sharing
