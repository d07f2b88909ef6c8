// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/handlers/handlers.h"
#include "daemon/worker/queues/enqueuer.h"

namespace sluice::worker {

HandlerResult HandleCreateUserEvent(Session& session, const pb::CreateUserEvent& cmd, Call&) {
  auto event = std::make_shared<EventObject>();
  event->is_user = true;
  ContextObject* const context = session.objects().Peek<ContextObject>(cmd.context_id());
  cl_int status = CL_INVALID_CONTEXT;
  if (context != nullptr) {
    event->handle.reset(cl().clCreateUserEvent(context->handle.get(), &status));
    event->context_number = context->number;
  }
  return status == CL_SUCCESS ? session.Add(cmd.event_id(), std::move(event)) : status;
}

HandlerResult HandleSetUserEventStatus(Session& session, const pb::SetUserEventStatus& cmd, Call&) {
  EventObject* const event = session.objects().Peek<EventObject>(cmd.event_id());
  if (event == nullptr || !event->is_user || !event->handle) return CL_INVALID_EVENT;
  const cl_int status = cl().clSetUserEventStatus(event->handle.get(), cmd.status());
  if (cmd.status() < 0) session.completions().SweepFailed();
  if (event->guard != nullptr) event->guard->Lift();
  return status;
}

HandlerResult HandleEnqueueMarker(Session& session, const pb::EnqueueMarker& cmd, Call&) {
  Enqueuer enqueue(session, cmd.on(), Enqueuer::Zeros::kOwed);
  if (!enqueue.ok()) return enqueue.answer();
  if ((cmd.list_only() || enqueue.HasWaited()) && enqueue.MayRunByList())
    return enqueue.RunByList();
  if (cmd.list_only()) enqueue.SetFailsAsOurs();
  enqueue.SetAfterAll();
  return enqueue.Run(
      [](cl_command_queue queue, cl_uint waits, const cl_event* list, cl_event* event) {
        return cl().clEnqueueMarkerWithWaitList(queue, waits, list, event);
      });
}

HandlerResult HandleEnqueueBarrier(Session& session, const pb::EnqueueBarrier& cmd, Call&) {
  Enqueuer enqueue(session, cmd.on(), Enqueuer::Zeros::kOwed);
  if (!enqueue.ok()) return enqueue.answer();
  // Later commands wait for the barriers before this one in any case.
  if (enqueue.HasWaited() && enqueue.MayRunByList()) return enqueue.RunByList();
  enqueue.SetAfterAll();
  QueueObject& barred = enqueue.queue();
  return enqueue.Run(
      [&](cl_command_queue queue, cl_uint waits, const cl_event* list, cl_event* event) {
        const cl_int status = cl().clEnqueueBarrierWithWaitList(queue, waits, list, event);
        if (status == CL_SUCCESS && event != nullptr) barred.NoteBarrier(*event);
        return status;
      });
}

}  // namespace sluice::worker
