// SPDX-License-Identifier: Apache-2.0
// The part that all clEnqueue* functions share. An entry point checks its handles and makes an
// EnqueueCall, which checks the wait list. It fills its message in command(), and ends with one of
// the Submits, which fill the message's Enqueue part, make the event if the application asked for
// one or the call needs one, and post:
//
//   Queue* queue = Queue::FromHost(queue_handle);
//   if (queue == nullptr) return CL_INVALID_COMMAND_QUEUE;
//   EnqueueCall call(queue, num_events, wait_list, event, CL_COMMAND_FILL_BUFFER);
//   CL_RETURN_IF_ERROR(call.status());
//   pb::EnqueueFillBuffer& body = *call.command().mutable_enqueue_fill_buffer();
//   ...
//   return call.Submit(body.mutable_on());
//
// Lives on the stack of one entry point; not thread-safe. Submit once.
#pragma once

#include <CL/cl.h>

#include "absl/container/inlined_vector.h"
#include "client_icd/base/args.h"
#include "client_icd/base/host_region.h"
#include "client_icd/objects/event.h"
#include "client_icd/objects/queue.h"
#include "client_icd/session/command_stream.h"

namespace sluice::client {

class EnqueueCall {
 public:
  // `event_out` may be null. `type` is what CL_EVENT_COMMAND_TYPE will say.
  EnqueueCall(Queue* queue, cl_uint num_events, const cl_event* wait_list, cl_event* event_out,
              cl_command_type type, LinkedEvents linked = LinkedEvents::kRefuse);
  // The second command of one call, which must not fail halfway: has no limit.
  EnqueueCall(Queue* queue, cl_command_type type);
  ~EnqueueCall();
  EnqueueCall(const EnqueueCall&) = delete;
  EnqueueCall& operator=(const EnqueueCall&) = delete;

  // CL_INVALID_EVENT_WAIT_LIST, CL_INVALID_EVENT, CL_INVALID_CONTEXT (an event of another context),
  // CL_DEVICE_NOT_AVAILABLE, CL_OUT_OF_RESOURCES (too many commands in flight), or CL_SUCCESS.
  cl_int status() const { return status_; }

  Queue& queue() const { return *queue_; }
  pb::Command& command() const { return *command_; }

  // One more event to wait for, whatever its state: also one that has ended, where an empty list
  // would mean everything.
  void WaitAlso(const Event& event) {
    wait_ids_.push_back(event.id());
    also_.push_back(&event);
  }

  // The command's event, which it has from now on, for later commands to wait for (WaitAlso).
  Ref<Event> GetEvent() {
    named_ = true;
    return Ref<Event>(MakeEvent());
  }

  // The object lives until the command has ended. Gives the command an event.
  void KeepUntilEnd(Ref<Object> object);
  // Runs in whichever thread ends the command's event, before the event counts as ended: short, no
  // waiting, no callbacks of the application (use session.callbacks()). Gives the command an event.
  // Not run if Submit fails.
  void WhenEnded(Event::Hook hook);
  void SoonWhenEnded(Event::Hook hook);

  cl_int Submit(pb::Enqueue* on);
  // Waits for the command's end and returns its error, if it failed, or else the error of an
  // earlier command that was refused late (ReturnsLateError). So do the others, if blocking.
  cl_int SubmitBlocking(pb::Enqueue* on);
  // There is a list, and all of it has completed: not the same as no list, where that means
  // everything.
  bool list_has_completed() const { return num_events_ != 0 && wait_ids_.empty(); }
  // A command that has nothing to do, and ends when what it waits for has: its list, and what its
  // place in the queue asks.
  cl_int SubmitNothing(bool blocking = false);
  // The command takes its bytes from `source`: as payload if they are few, else the worker asks for
  // them.
  cl_int SubmitWrite(pb::Enqueue* on, const HostRegion& source, bool blocking);
  // As SubmitWrite without blocking; the source is never read before the worker grants it room,
  // which it does once the command may run.
  cl_int SubmitLateWrite(pb::Enqueue* on, const HostRegion& source);
  // The command's bytes go to `destination`.
  cl_int SubmitRead(pb::Enqueue* on, const HostRegion& destination, bool blocking);
  // The error that a blocking Submit has returned is an earlier command's: this one has done its
  // part, which the caller may have to undo.
  bool ReturnsLateError() const { return returns_late_error_; }

 private:
  Event* MakeEvent();
  bool EndsAfterAll() const;
  void NoteGates();
  // True if the region lies in a mirror: the command needs no more than its place.
  bool NameMirror(pb::Enqueue* on, const HostRegion& region) const;
  cl_int PostWithEvent(Event* event, pb::Enqueue* on, std::string_view payload);
  cl_int WaitForEnd(Event* event);
  cl_int Post(pb::Enqueue* on, std::string_view payload, bool blocking);

  Queue* const queue_;
  const cl_uint num_events_;
  const cl_event* const wait_list_;  // Checked by ReadWaitList.
  cl_event* const event_out_;
  const cl_command_type type_;
  WaitIds wait_ids_;
  absl::InlinedVector<const Event*, 2> also_;  // Those of WaitAlso.
  cl_int status_;                              // After wait_ids_, which its initialiser fills.
  bool counted_ = false;  // Taken from the session's commands in flight, and not passed on.
  Ref<Event> event_;
  bool named_ = false;  // Later commands of ours may name the event.
  bool returns_late_error_ = false;
  ScopedCommand command_;
};

}  // namespace sluice::client
