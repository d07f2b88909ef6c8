// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/queues/queue.h"

#include <utility>

#include "broker/os/threads.h"
#include "daemon/worker/session.h"

namespace sluice::worker {

void QueueObject::Keep(Session& session, cl_event event, absl::Span<const cl_event> waits) const {
  if (device->quirks.frees_failed_commands) session.kept_events().Keep(event, waits);
}

bool QueueObject::NotesHeld() const {
  return device->quirks.frees_failed_commands || device->quirks.fails_waits_with_minus_one;
}

bool QueueObject::KeepWhileItWaits(Session& session, cl_event event,
                                   absl::Span<const cl_event> waits, cl_event before) const {
  if (!waits.empty()) {
    Keep(session, event, waits);
    return true;
  }
  const cl_int status = before == nullptr ? CL_COMPLETE : StatusOf(before);
  if (status > CL_COMPLETE) Keep(session, event, {&before, 1});
  return status != CL_COMPLETE;  // It may have failed just now.
}

cl_int WhenAllEnded(Session& session, const std::shared_ptr<QueueObject>& queue,
                    std::function<void(cl_int finished)> then) {
  UniqueCl<cl_event> last;
  if (const cl_int status = queue->LastEvent(session, &last); status != CL_SUCCESS) return status;
  // Where events are polled, the first look tells: one that has not ended is dear to ask.
  if (!last || (!session.completions().polls() && StatusOf(last.get()) == CL_COMPLETE &&
                session.completions().AllDelivered(queue->lane))) {
    then(CL_SUCCESS);
    return CL_SUCCESS;
  }
  session.Touch(queue.get());
  const auto on_last = [then = std::move(then), queue, owner = &session](cl_int status) {
    if (status == CL_COMPLETE) return then(CL_SUCCESS);
    // It failed, perhaps before others of the queue have ended: the driver knows when they have.
    owner->finishers.fetch_add(1, std::memory_order_relaxed);
    os::StartDetached([tell = std::function<void(cl_int)>(then),
                       held = std::shared_ptr<QueueObject>(queue), owner]() mutable {
      const cl_int finished = cl().clFinish(held->handle.get());
      owner->completions().SweepEnded();
      std::exchange(tell, nullptr)(finished);
      held.reset();
      owner->finishers.fetch_sub(1, std::memory_order_release);
    });
  };
  CompletionOrder order = {queue->lane, /*after_all=*/true};
  order.can_run = queue->CanRun(/*after_all=*/true);
  session.completions().Then(last.get(), on_last, std::move(order));
  return CL_SUCCESS;
}

}  // namespace sluice::worker
