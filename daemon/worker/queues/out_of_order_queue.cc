// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/queues/out_of_order_queue.h"

#include <utility>
#include <vector>

#include "daemon/worker/session.h"

namespace sluice::worker {

bool OutOfOrderQueue::IsBarred() const {
  return last_barrier_ && StatusOf(last_barrier_.get()) > CL_COMPLETE;
}

cl_int OutOfOrderQueue::PrepareCommand(Session& session, bool after_all) {
  if (!after_all) return CL_SUCCESS;
  const std::vector<cl_event> pending = own_events_.Pending();
  if (pending.empty()) return CL_SUCCESS;
  UniqueCl<cl_event> stand_in;
  const cl_int status = cl().clEnqueueMarkerWithWaitList(
      handle.get(), static_cast<cl_uint>(pending.size()), pending.data(), stand_in.out());
  if (status != CL_SUCCESS) return status;
  Keep(session, stand_in.get(), pending);
  own_events_.Clear();
  session.Touch(this);
  return CL_SUCCESS;
}

cl_int OutOfOrderQueue::EnqueueBarrier(Session& session, WaitList* list) {
  if (IsBarred()) list->push_back(last_barrier_.get());
  UniqueCl<cl_event> barrier;
  const cl_int status = cl().clEnqueueBarrierWithWaitList(
      handle.get(), static_cast<cl_uint>(list->size()), list->data(), barrier.out());
  if (status != CL_SUCCESS) return status;
  Keep(session, barrier.get(), *list);
  session.Touch(this);
  last_barrier_ = std::move(barrier);
  return CL_SUCCESS;
}

bool OutOfOrderQueue::NoteEnqueued(Session& session, cl_event event,
                                   absl::Span<const cl_event> waits, bool) {
  return NotesHeld() && KeepWhileItWaits(session, event, waits, last_barrier_.get());
}

void OutOfOrderQueue::NoteTransfer(Session&, std::shared_ptr<TransferEnd> end) {
  NoteOwnCommand(Share(end->done.get()));
}

void OutOfOrderQueue::WhenReady(Session& session, WaitList list, const UniqueCl<cl_event>&,
                                std::function<void(cl_int status)> begin) {
  if (IsBarred()) list.push_back(last_barrier_.get());
  WhenAllComplete(session.completions(), list, std::move(begin));
}

cl_int OutOfOrderQueue::LastEvent(Session& session, UniqueCl<cl_event>* last) {
  if (const cl_int status = PrepareCommand(session, /*after_all=*/true); status != CL_SUCCESS)
    return status;
  return cl().clEnqueueMarkerWithWaitList(handle.get(), 0, nullptr, last->out());
}

}  // namespace sluice::worker
