// SPDX-License-Identifier: Apache-2.0
// A command queue: the driver's, and what the worker remembers of the commands that it was given.
// The two orders of section 5.1 are two classes, behind one interface for those who enqueue
// (enqueuer.h):
//
//   InOrderQueue     (in_order_queue.h)      a command waits for the one before it, by its place
//   OutOfOrderQueue  (out_of_order_queue.h)  a command waits for its list, and for barriers
//
// Made by handlers/queue.cc, owned by the session's object table. Session thread only, which
// Session::objects() checks for whoever looks for one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "daemon/worker/objects.h"
#include "daemon/worker/queues/completions.h"
#include "daemon/worker/queues/in_flight.h"
#include "daemon/worker/queues/queue_hints.h"

namespace sluice::worker {

class OutOfOrderQueue;
class Session;
struct TransferEnd;

using WaitList = absl::InlinedVector<cl_event, 8>;

class QueueObject : public Object {
 public:
  static constexpr ObjectType kType = ObjectType::kQueue;
  static constexpr cl_int kInvalid = CL_INVALID_COMMAND_QUEUE;

  // Constant after creation.
  uint64_t id = 0;
  UniqueCl<cl_command_queue> handle;
  std::shared_ptr<ContextObject> context;
  std::shared_ptr<DeviceObject> device;
  bool profiling = false;
  QueueHints hints;
  std::shared_ptr<void> counted;  // While it lives, the context counts this queue.
  const std::shared_ptr<CompletionLane> lane;
  const std::shared_ptr<QueueInFlight> in_flight;

  bool touched = false;            // Session::Touch.
  bool uncounted = false;          // A command that can run may not be (turn_gate.h).
  uint64_t waits_for_defined = 0;  // Up to which OwedZeros::Definition a barrier of it waits.

  // Null: it is in order.
  virtual OutOfOrderQueue* AsOutOfOrder() { return nullptr; }

  // --- Before a command is given to the driver. `after_all`: it is a marker or barrier without a
  // list.

  // The driver's queue learns of those that the command waits for and that it does not know.
  virtual cl_int PrepareCommand(Session& session, bool after_all) = 0;
  // Nothing but the device is awaited by its place, as far as is known (turn_gate.h).
  virtual bool CanRun(bool after_all) = 0;
  // A command without a list cannot wait for the application, and those after it find it done.
  virtual bool RunsUnheld() = 0;
  // To the driver an empty list means everything: a command whose list has ended needs one.
  virtual bool NeedsAList() const = 0;
  // The commands to come wait for these. May add to the list.
  virtual cl_int EnqueueBarrier(Session& session, WaitList* list) = 0;
  // Adds those of what it waits for by its place (guards.h).
  virtual void AddGuardsTo(Guards* guards) = 0;

  // --- Of a command that the driver has been given, or that stands for itself.

  // Nobody asks for its event. False: the driver is to make one all the same.
  virtual bool MayLeaveUnmarked(bool carries) const = 0;
  virtual void LeaveUnmarked(std::unique_ptr<Carried> carried) = 0;
  // Adds to `carried` what those before it carry that were left without an event.
  virtual std::unique_ptr<Carried> CollectUnmarked(std::unique_ptr<Carried> carried) = 0;
  // It may fail by these.
  virtual void NoteGuards(const Guards& guards) = 0;
  // `event` waits for the list and its place. True if it may fail by what it waits for.
  virtual bool NoteEnqueued(Session& session, cl_event event, absl::Span<const cl_event> waits,
                            bool can_run) = 0;
  // The last step: it is the newest now. `ends_late`: CompletionOrder's.
  virtual void NoteNewest(UniqueCl<cl_event> event, bool ends_late) = 0;
  // It is a barrier.
  virtual void NoteBarrier(cl_event event) = 0;
  // The end of a later one says that this one has completed (CompletionOrder).
  virtual bool EndsWithLater() const = 0;
  // Its marks do not end late, and kernels may (DriverQuirks::kernels_end_late),
  virtual bool MarksByWrites() const { return false; }
  // now that the driver's context has other queues.
  bool KernelsEndLate() const {
    return MarksByWrites() && context->queues->load(std::memory_order_relaxed) > 1;
  }

  // --- Of a transfer, which the driver's queue does not know.

  // Null in `ready`: it waits for its list only, or for nothing.
  virtual cl_int FindReady(Session& session, const WaitList& list, UniqueCl<cl_event>* ready) = 0;
  virtual void NoteTransfer(Session& session, std::shared_ptr<TransferEnd> end) = 0;
  // Calls `begin` when it may run: on this thread if that is so already, else on any.
  virtual void WhenReady(Session& session, WaitList list, const UniqueCl<cl_event>& ready,
                         std::function<void(cl_int status)> begin) = 0;

  // --- Of all that was enqueued so far.

  // Null if nothing was, or all of it has ended.
  virtual cl_int LastEvent(Session& session, UniqueCl<cl_event>* last) = 0;
  // Gives an event to the newest command, if it was left without one or has one that ends late.
  virtual cl_int Mark(Session& session) = 0;
  // Some command without an event carries something.
  virtual bool HoldsUnmarked() const = 0;
  // Nothing runs or waits in it: a host copy of memory that the host shares may be made at once.
  // False where nobody knows that without asking the driver.
  virtual bool IsIdle(Session& session) = 0;

 protected:
  QueueObject(bool in_order, Quota* quota)
      : Object(kType),
        lane(Completions::MakeLane(in_order)),
        in_flight(std::make_shared<QueueInFlight>(quota, in_order)) {}

  // While it may fail by one of those.
  void Keep(Session& session, cl_event event, absl::Span<const cl_event> waits) const;
  // As long as the event may fail by its list, or without one by the command `before` it, for
  // drivers that then still use it (KeptEvents). False if it waits for nothing.
  bool KeepWhileItWaits(Session& session, cl_event event, absl::Span<const cl_event> waits,
                        cl_event before) const;
  // It matters that a command may fail by what it waits for.
  bool NotesHeld() const;
};

// Calls `then` when everything that was enqueued so far has ended, in whatever way, and has been
// told: on this thread if that is so already, else on any. It is given what the driver's clFinish
// says: CL_SUCCESS also where a command has failed by what it waited for.
cl_int WhenAllEnded(Session& session, const std::shared_ptr<QueueObject>& queue,
                    std::function<void(cl_int finished)> then);

}  // namespace sluice::worker
