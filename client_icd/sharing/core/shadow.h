// SPDX-License-Identifier: Apache-2.0
// The device shadow (../README.md, "Ways"): memory that the worker makes and the native API opens
// as well, or the reverse (Direct3D, ways.h). A buffer's memory object is the shadow itself (where
// Context::makes_usable_images), and so is an image's that the native API has made. Any other has a
// buffer beside it, which the worker copies to and from on the device. Local sessions only: the
// memory's descriptor goes over the handle channel.
//
// Memory that only the driver can open also changes hands when it is imported without a shadow: the
// same commands, and BeginImported and EndImported in place of the copies.
//
//   acquire:  CopyToShadow on the native thread -> PostTakeShadow: the worker acquires, [to image]
//   release:  PostGiveShadow: [from image], the worker releases -> CopyFromShadow there
//
// The arrows are events of the host. Where both sides have semaphores (native_object.h) the host
// only passes on that something has been given to the device, and the device waits: the next step
// is prepared while the copy runs. That a semaphore is signalled and waited for once each time is
// seen to by SemaphoreTurns (shared_object.h).
//
// Thread-safe: no state.
#pragma once

#include <CL/cl.h>

#include "absl/status/status.h"
#include "client_icd/objects/event.h"
#include "client_icd/objects/memory.h"
#include "client_icd/objects/queue.h"
#include "client_icd/sharing/core/native_object.h"
#include "client_icd/sharing/core/shared_object.h"

namespace sluice::client::sharing {

// The memory object's bytes, tightly packed.
uint64_t PackedBytes(const MemObject& memory);

// Makes the worker's side of `memory` with a shadow that the native object has taken: sets the way.
// An error says why not, for the log; nothing is left of the attempt, and another way can be gone.
absl::Status MakeShadowed(MemObject* memory, SharedObject* shared);

// Posts what follows CopyToShadow or BeginImported, behind `after`. `last`: when OpenCL may use the
// memory object.
// With kSemaphore the turn has been taken, and is given back here.
cl_int PostTakeShadow(Queue* queue, const Ref<MemObject>& memory, const Event& after,
                      ShadowSync sync, Ref<Event>* last);

// Posts what goes before CopyFromShadow or EndImported, behind the wait list and the end of the
// acquire (null: it has ended). `then` runs when it has ended, unless this fails. With kSemaphore
// the turn has been taken; CopyFromShadow's success gives it back.
struct GiveShadow {
  bool written = false;
  ShadowSync sync = ShadowSync::kHost;
  const Event* acquired = nullptr;
  cl_uint num_events = 0;
  const cl_event* wait_list = nullptr;
};
cl_int PostGiveShadow(Queue* queue, const Ref<MemObject>& memory, const GiveShadow& give,
                      Event::Hook then);

}  // namespace sluice::client::sharing
