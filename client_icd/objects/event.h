// SPDX-License-Identifier: Apache-2.0
// An event: of a command, or a user event. It ends once, with CL_COMPLETE or an error: by a
// Completion from the worker, by clSetUserEventStatus, or by the loss of the session. Until then
// the stream holds it, and it holds what its command needs: the application's memory of a transfer,
// objects, hooks.
//
// Thread-safe. The status is an atomic, so that a look at it takes no lock; what grows is under
// mu_. Callbacks of the application never run here: they are queued on the session's callback
// thread.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "client_icd/base/gates.h"
#include "client_icd/base/host_region.h"
#include "client_icd/base/object.h"
#include "client_icd/objects/context.h"
#include "client_icd/objects/queue.h"
#include "client_icd/session/pending_command.h"

namespace sluice::client {

class Event : public ClObject<Event, cl_event, ObjectKind::kEvent> {
 public:
  using Callback = void(CL_CALLBACK*)(cl_event event, cl_int status, void* user_data);
  // Runs in whichever thread ends the event, right before it counts as ended. Must be short, must
  // not wait, must not call the application.
  using Hook = std::function<void(cl_int status)>;

  using Direction = PendingCommand::Direction;

  // Of a command.
  Event(Ref<Queue> queue, cl_command_type type);
  // A user event, or one linked to a fence of another API, which has that API's type.
  explicit Event(Ref<Context> context, cl_command_type type = CL_COMMAND_USER);
  ~Event();

  Context& context() const { return *context_; }
  Session& session() const { return context_->session(); }
  Queue* queue() const { return queue_.get(); }  // Null for a user event.
  cl_command_type type() const { return type_; }
  bool is_user() const { return type_ == CL_COMMAND_USER; }
  // To a fence of another API: only acquires may wait for it.
  bool is_linked() const { return queue_.get() == nullptr && !is_user(); }

  // An execution status as clGetEventInfo reports it: CL_COMPLETE or negative once ended.
  cl_int status() const;
  // A user event that the termination of its context leaves for the application to end.
  bool StaysOpen() const;
  bool ended() const { return pending_.ended(); }
  // This event, as the stream knows it.
  PendingCommand& pending() { return pending_; }

  // Before the command is posted; constant from then on until the event has ended.
  void SetTransfer(Direction direction, const HostRegion& region);
  Direction direction() const { return pending_.direction(); }
  const HostRegion& region() const { return pending_.region(); }
  void KeepUntilEnd(Ref<Object> object);
  // True if it does so, before its end, for such an object.
  bool Keeps(absl::FunctionRef<bool(const Object&)> is_such) const;
  void WhenEnded(Hook hook);
  // As WhenEnded, for a hook that somebody waits for: the worker wakes us for this event even if
  // nobody waits for the event itself.
  void SoonWhenEnded(Hook hook);
  // So many commands are no longer in flight when this one has ended: itself, and those of its
  // queue that it covers; a Finish covers them even if it fails. Before the command is posted.
  void SetCovers(uint64_t commands, bool is_finish = false) {
    covers_ = commands;
    is_finish_ = is_finish;
  }
  // The call that enqueues the command waits for it, and answers with its error. Before the command
  // is posted.
  void SetAnswered() { pending_.SetAnswered(); }
  // The worker knows the id: it is released on the wire too.
  void SetPosted() { posted_ = true; }
  // Somebody else releases it there.
  void SetReleased() { posted_ = false; }
  // The command could not be posted: what was kept is let go, hooks do not run.
  void Abandon();

  // Why the command fails, where that is known here: what the event says in place of the driver's
  // code. Before it ends.
  void SetCause(cl_int status) { cause_.store(status, std::memory_order_relaxed); }
  // Ends the event: hooks, then the status, then callbacks are queued; once. Does not wake waiters:
  // the stream does, once it has handled all that was there.
  void End(cl_int status, absl::Span<const uint64_t> profiling);
  // The application's user events that it waits for, or is (gates.h). SetGates: before the command
  // is posted.
  Gates gates() const {
    absl::MutexLock lock(&mu_);
    return gates_;
  }
  void SetGates(Gates gates) {
    absl::MutexLock lock(&mu_);
    gates_ = std::move(gates);
  }
  // Of the application's user events: what waits for them may be waited for from SetUserGate to
  // OpenUserGate no more.
  void SetUserGate();
  void OpenUserGate();

  // clSetUserEventStatus: true for the first.
  bool ClaimUserStatus() { return !user_status_claimed_.exchange(true, std::memory_order_relaxed); }

  void AddCallback(cl_int when, Callback callback, void* user_data);
  cl_int GetInfo(cl_event_info param_name, const InfoSink& sink);
  cl_int GetProfilingInfo(cl_profiling_info param_name, const InfoSink& sink);

 private:
  struct Registered {
    cl_int when;
    Callback callback;
    void* user_data;
  };
  class Pending final : public PendingCommand {
   public:
    explicit Pending(Event* event) : PendingCommand(event), event_(*event) {}
    cl_command_type type() const override { return event_.type(); }
    cl_int status() const override { return event_.status(); }
    bool StaysOpen() const override { return event_.StaysOpen(); }
    void End(cl_int status, absl::Span<const uint64_t> profiling) override {
      event_.End(status, profiling);
    }
    using PendingCommand::SetEnded;

   private:
    Event& event_;
  };

  void QueueCallback(const Registered& registered, cl_int status);
  void ReturnCovered(cl_int status);

  const Ref<Queue> queue_;
  const Ref<Context> context_;
  const cl_command_type type_;
  bool posted_ = false;
  bool is_finish_ = false;
  uint64_t covers_ = 0;                // Whoever ends the event, or abandons it, takes it.
  bool has_profiling_ = false;         // As profiling_.
  std::array<uint64_t, 5> profiling_;  // Written before it has ended, constant after.

  std::atomic<bool> user_status_claimed_{false};
  std::atomic<cl_int> status_{CL_SUBMITTED};
  std::atomic<cl_int> cause_{CL_SUCCESS};
  Pending pending_{this};

  Gates::Gate
      user_gate_;  // Constant once the handle is given out; null if it is not such an event.

  mutable absl::Mutex mu_;
  Gates gates_ ABSL_GUARDED_BY(mu_);
  std::vector<Ref<Object>> kept_ ABSL_GUARDED_BY(mu_);
  std::vector<Hook> hooks_ ABSL_GUARDED_BY(mu_);
  int eager_hooks_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<Registered> callbacks_ ABSL_GUARDED_BY(mu_);
};

// Event wait list, OpenCL 3.0 section 5.8: CL_INVALID_EVENT_WAIT_LIST for null against count or an
// invalid event, CL_INVALID_CONTEXT for one of another context. Events that have ended well are
// left out. CL_OUT_OF_HOST_MEMORY for more of them than a command has room for.
// CL_INVALID_EVENT for one that is linked to a fence of GL or EGL, unless the command is an acquire
// (OpenCL 2.2 Extension Specification, sections 9.5.4 and 9.17.4).
using WaitIds = absl::InlinedVector<uint64_t, 4>;
enum class LinkedEvents { kRefuse, kAllow };
cl_int ReadWaitList(cl_uint count, const cl_event* list, const Context& context, WaitIds* ids,
                    LinkedEvents linked = LinkedEvents::kRefuse);

// A user event: of the application, or of ours (a command waits for something on this side).
// CL_DEVICE_NOT_AVAILABLE if the session is lost.
cl_int MakeUserEvent(Context* context, Ref<Event>* out);
// The same, linked to a fence of another API: of that type, and only ours to end.
cl_int MakeLinkedEvent(Context* context, cl_command_type type, Ref<Event>* out);
// Ends a user event whose status has been claimed.
cl_int EndUserEvent(Event* event, cl_int status);
// The same of one that no other thread uses any more. The calling thread holds nothing of the
// event's when the worker hears of it: what comes after may be the application's last release,
// which the context must not outlive.
void EndOwnEvent(Ref<Event> event, cl_int status);

}  // namespace sluice::client
