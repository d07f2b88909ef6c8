// SPDX-License-Identifier: Apache-2.0
// The sharing core: what all sharing extensions have in common. An adapter (gl.cc, egl.cc,
// gralloc.cc, ...) checks what is its API's own, wraps the native object in a NativeObject
// (native_object.h), and leaves the rest to the three functions below; where APIs differ they read
// ApiRules (api_rules.h).
//
//   cl_mem CL_API_CALL clCreateFromXxx(...) noexcept {
//     ... the API's own checks; MemObject::Description about: type, flags, bytes or image ...
//     Ref<MemObject> memory;
//     const cl_int status = sharing::CreateShared(context, std::move(about), Api::kXxx,
//                                                 std::make_unique<XxxObject>(...), &memory);
//     if (status != CL_SUCCESS) return Fail(errcode_ret, status);
//     Succeed(errcode_ret);
//     return memory.Detach()->handle();
//   }
//   cl_int CL_API_CALL clEnqueueAcquireXxx(...) noexcept {
//     return sharing::EnqueueAcquire(Api::kXxx, {queue, count, objects, events, list, event});
//   }
//
// An acquire is made of these, in the queue (staging; M only if there is something to wait for):
//
//    [M: marker, the wait list] -> native thread: before(), Fetch each -> U: a user event of ours
//    [W: a write per object, waits for U, its bytes fed on the worker's grant]
//    [A: marker, waits for U and every W] = the application's event
//
// and a release:
//
//    [R: a read per object that was written, the wait list] -> native thread: Store each, after()
//                                                           -> U
//    [A: marker, waits for U] = the application's event
//
// Memory of a CPU device that both sides share needs no W and no R: the native thread copies
// itself.
//
// M and A wait for their lists only, also in a queue that is out of order (list_only). But there an
// A of Direct3D's is a barrier, and its release has one before all else (ApiRules::orders_queue). U
// is known to the worker, so that an in-order queue stays in order, clFinish covers A, and commands
// of other queues may wait for it. Nothing blocks the caller, whatever the wait list waits for. An
// import has neither W nor R, and BeginImported and EndImported in place of Fetch and Store. A
// shadow, and an import that the worker's driver is told of, has T, the worker's taking of it, in
// place of W, and G, its giving back, in place of R (shadow.h). A shadow has CopyToShadow and
// CopyFromShadow in place of Fetch and Store. With semaphores U and G's end say that the device has
// been told, not that it has done it.
//
// Which bytes travel: an acquire fetches always, also for CL_MEM_WRITE_ONLY, since a release writes
// back the whole object and bytes that no command wrote must keep their contents. A release stores
// only if a command since the acquire may have written: a kernel with the object as an argument
// that is not CL_MEM_READ_ONLY, a write, copy, fill, or map for writing.
//
// A release waits for the end of its acquire, whatever queue that was in. An acquire that fails
// late (its fetch timed out, an event of its wait list failed) leaves the object acquired: the
// release fails too, and stores nothing. Native objects that it has taken are given back first
// (UndoAcquire). The loss of the session is told to those that must know (EndListener).
//
// Thread-safe.
#pragma once

#include <CL/cl.h>

#include <functional>
#include <memory>

#include "absl/time/time.h"
#include "client_icd/objects/context.h"
#include "client_icd/objects/event.h"
#include "client_icd/objects/memory.h"
#include "client_icd/objects/queue.h"
#include "client_icd/sharing/core/api_rules.h"
#include "client_icd/sharing/core/native_object.h"
#include "client_icd/sharing/core/shared_object.h"

namespace sluice::client::sharing {

// Makes the memory object of a native object, with the best way that both sides can go. `about` is
// complete but for `shared`; its flags are checked by the caller, who knows which of them its API
// takes. The first contents are undefined until the first acquire. Blocks for one round trip.
cl_int CreateShared(Context* context, MemObject::Description about, Api api,
                    std::unique_ptr<NativeObject> native, Ref<MemObject>* out);

// "Only CL_MEM_READ_ONLY, CL_MEM_WRITE_ONLY and CL_MEM_READ_WRITE values ... can be used" (sections
// 9.4.2, 9.6.7.3, 9.7.7.2, 9.8.7.3); none is the default, CL_MEM_READ_WRITE. Else CL_INVALID_VALUE.
cl_int CheckAccessFlags(cl_mem_flags* flags);

// `unsupported` if no device of the context has such images, or why that cannot be known (a lost
// session's code). To be asked before CreateShared makes one: drivers differ in the code that they
// give for a format they lack (CL_INVALID_OPERATION was seen).
cl_int CheckFormat(Context* context, cl_mem_flags flags, cl_mem_object_type type,
                   const cl_image_format& wanted, cl_int unsupported);

// The arguments of an acquire or release function, as they came.
struct SyncArguments {
  cl_command_queue queue;
  cl_uint num_objects;
  const cl_mem* objects;
  cl_uint num_events;
  const cl_event* wait_list;
  cl_event* event;
};

// The steps that an adapter wants done around the objects of one call, on the native thread of the
// first or the last: waiting for a fence that the entry point issued; issuing one. Either may be
// empty. An error fails the command.
struct SyncSteps {
  std::function<cl_int(absl::Time deadline)> before;
  std::function<cl_int(absl::Time deadline)> after;
};

// CL_INVALID_COMMAND_QUEUE, CL_INVALID_VALUE, CL_INVALID_MEM_OBJECT, CL_INVALID_CONTEXT,
// CL_INVALID_EVENT_WAIT_LIST and the codes of the API's rules; never waits. If one object is
// refused, the states of all stay as they were.
cl_int EnqueueAcquire(Api api, const SyncArguments& arguments, SyncSteps steps = {});
cl_int EnqueueRelease(Api api, const SyncArguments& arguments, SyncSteps steps = {});

// Waits in the call for a release that does not come behind a user event. Its own error, or as from
// every call that waits that of an earlier command of the queue which was refused late. With an
// error the call gives the application no event: nobody releases what comes with a failure, and it
// would keep the context. A release that failed since what it waits for had failed is its event's
// to tell: the functions have no code for that.
cl_int WaitForRelease(Queue& queue, Event* released, cl_event* event);

// True if such a call's command would come behind user events without a status (gates.h): what then
// waits for it in the call may be what sets them. Of arguments that will be refused, anything.
// `behind_all`: also in a queue out of order it comes behind all before it.
bool ComesBehindUserEvent(const SyncArguments& arguments, bool behind_all = false);

// The shared object of a memory object that was itself made from a native object of this API; null
// for any other, sub-buffers included.
SharedObject* FindShared(const MemObject& memory, Api api);

}  // namespace sluice::client::sharing
