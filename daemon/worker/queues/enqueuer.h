// SPDX-License-Identifier: Apache-2.0
// The shape of every enqueue handler: find the objects, call the driver, publish the event.
//
//   Enqueuer enqueue(session, cmd.on());
//   MemoryObject* source = enqueue.Find<MemoryObject>(cmd.source_id());
//   if (!enqueue.ok()) return enqueue.answer();
//   return enqueue.Run([&](cl_command_queue queue, cl_uint waits, const cl_event* list,
//                          cl_event* event) { ... });
//
// Session thread only.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "daemon/worker/call.h"
#include "daemon/worker/queues/own_commands.h"
#include "daemon/worker/queues/queue.h"
#include "daemon/worker/session.h"

namespace sluice::worker {

class Enqueuer {
 public:
  // kPaid: new memory of the context that has not been filled (zero_fill.h) is filled before the
  // command. kOwed: it touches no memory, or the handler calls PayOrReplaceZeros.
  enum class Zeros { kPaid, kOwed };
  Enqueuer(Session& session, const pb::Enqueue& on, Zeros zeros = Zeros::kPaid);

  // Null, and ok() false, if the id is no object of that type. The first failure is the answer.
  template <typename T>
  T* Find(uint64_t id) {
    T* const object = session_.objects().Peek<T>(id);
    if (object == nullptr) {
      Fail(T::kInvalid);
    } else if constexpr (requires { object->context; }) {
      // A handle of another driver would be no handle to this one.
      if (queue_ != nullptr && object->context != queue_->context) Fail(CL_INVALID_CONTEXT);
    }
    return object;
  }

  bool ok() const { return status_ == CL_SUCCESS; }
  HandlerResult answer() const { return status_; }
  QueueObject& queue() { return *queue_; }

  // Calls enqueue(queue, number of waits, waits, &event) -> cl_int, and publishes the event. Null
  // in place of &event: nobody will ask for it.
  template <typename F>
  HandlerResult Run(F&& enqueue, std::unique_ptr<Carried> carried = nullptr) {
    TakeTurn();
    if (const cl_int prepared = queue_->PrepareCommand(session_, after_all_);
        prepared != CL_SUCCESS) {
      return prepared;
    }
    const bool marked = NeedsEvent(carried.get());
    UniqueCl<cl_event> event;
    const cl_int status = enqueue(queue_->handle.get(), static_cast<cl_uint>(waits_.size()),
                                  waits(), marked ? event.out() : nullptr);
    if (status != CL_SUCCESS) return status;
    if (replaces_zeros_of_ != nullptr) NoteDefinition(event.get());
    if (!marked) return LeaveUnmarked(std::move(carried));
    return Publish(std::move(event), std::move(carried));
  }

  // `written`: the command writes all of this buffer, at once; null: it may see memory that is owed
  // zeros. Before Run.
  cl_int PayOrReplaceZeros(MemoryObject* written);

  // A transfer that the client feeds or takes in chunks (transfers.h).
  HandlerResult RunTransfer(TransferPlan plan);
  // True if it moves bytes to or from a mirror: a transfer then, however small.
  bool names_mirror() const { return mirror_mem_id_ != 0; }

  // A command that the driver must not be given before it may run. start(&event) -> cl_int is
  // called then, on this thread or a driver's, and must not wait; the command ends with the event,
  // or at once if there is none. `last` runs when that has ended, or start or what the command
  // waits for has failed: it is given the status, and returns the command's.
  HandlerResult RunWhenReady(std::function<cl_int(cl_event* ended)> start,
                             std::function<cl_int(cl_int ended)> last);

  // In a pool: a kernel that may print, which runs when no other session's does
  // (pool/printing_turns.h). As Run.
  using Launch = std::function<cl_int(cl_command_queue queue, cl_uint waits, const cl_event* list,
                                      cl_event* event)>;
  HandlerResult RunPrinting(const Launch& launch);

  // A command that waits for its list and for barriers, whatever the driver's markers wait for, and
  // then does the steps (own_commands.h). Only if MayRunByList: queues out of order.
  HandlerResult RunByList(OwnCommand::Steps steps = {});
  bool MayRunByList() const;
  // Nothing is to be done but to wait.
  HandlerResult RunWithoutWork();

  // True if nothing runs or waits in an in-order queue and the command waits for nothing. A host
  // copy of memory that the host shares may be made at once, and the driver need not be asked to
  // make it.
  bool IsIdle();
  // The same, for who has the times of a command to tell: also in a queue with profiling.
  bool IsIdleOrTimed();
  HandlerResult CompleteNow(std::string_view payload, const EventTimes* times = nullptr);

  // For markers and barriers: without a wait list, they end after all before them.
  void SetAfterAll() { after_all_ = !has_wait_list_; }
  // For what the worker also does without the driver (transfers and maps, by their size and the
  // client's transport): it fails by what it waits for with one code, and not the driver's own.
  void SetFailsAsOurs() { fails_as_ours_ = true; }
  // For reads and writes of buffers: no DriverQuirks::kernels_end_late.
  void SetEndsAlone() { ends_alone_ = true; }
  // True if there was a wait list, and all of it has completed: none may be passed to the driver,
  // to which an empty list means everything. A barrier before it may be pending all the same
  // (RunByList). Never in a queue out of order with profiling.
  bool HasWaited() const { return has_wait_list_ && waits_.empty(); }

 private:
  // All of the wait list has completed, but only the driver can tell the times of the command: it
  // is given a list of something that has ended.
  void WaitForTheEnded();
  // The next commands of the queue wait for those of others that make memory defined.
  cl_int WaitForDefinedMemory();
  // Of what it waits for, and what waits for it (guards.h).
  void CollectGuards(EventObject* event);
  void GuardWaits();
  void NoteDefinition(cl_event event);
  // Waits in the gate, if the command can run and it is another worker's turn.
  void TakeTurn();
  // Counts what of the queue has not ended, though nobody asked to be told of its end.
  static void CountUnwatched(Session& session, QueueObject* queue);
  // Later commands find the command by its event, or by its place in the queue.
  // `ends_with_later_of`: of EventObject.
  cl_int AddEvent(cl_event event, std::shared_ptr<CompletionLane> ends_with_later_of = nullptr);
  void Fail(cl_int status) {
    if (status_ == CL_SUCCESS) status_ = status;
  }
  HandlerResult RunInMirror(const TransferPlan& plan);
  const cl_event* waits() const { return waits_.empty() ? nullptr : waits_.data(); }
  // False: nothing is to be told of the command, and enough commands come after it that one of
  // them will have an event. A driver takes up to 1.5 us for one.
  bool NeedsEvent(const Carried* carried);
  HandlerResult LeaveUnmarked(std::unique_ptr<Carried> carried);
  HandlerResult Publish(UniqueCl<cl_event> event, std::unique_ptr<Carried> carried);

  Session& session_;
  const uint64_t event_id_;
  const bool named_;  // Later commands may ask for the event.
  const uint64_t mirror_mem_id_;
  const uint64_t mirror_offset_;
  QueueObject* queue_ = nullptr;
  MemoryObject* replaces_zeros_of_ = nullptr;
  UniqueCl<cl_event> ended_;
  WaitList waits_;
  Guards guards_;
  cl_int status_ = CL_SUCCESS;
  bool has_wait_list_ = false;
  bool waits_elsewhere_ = false;  // Not only for commands that end with a later one of its queue.
  bool waits_for_stuck_ = false;  // For what may wait for somebody else, or is somebody else's.
  bool can_run_ = false;          // As CompletionOrder's.
  bool counted_ = false;  // Watched until it has ended, whoever asks (turn_gate.h, kernel_watch.h).
  bool after_all_ = false;
  bool fails_as_ours_ = false;
  bool ends_alone_ = false;
};

}  // namespace sluice::worker
