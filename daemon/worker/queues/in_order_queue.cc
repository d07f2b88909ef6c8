// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/queues/in_order_queue.h"

#include <utility>

#include "daemon/worker/session.h"

namespace sluice::worker {
namespace {

// In memory until a later command's event tells that they have ended.
constexpr size_t kMostUnmarkedPayloads = 32;

}  // namespace

bool InOrderQueue::TransferIsUnderWay() const {
  return transfer_ != nullptr && !transfer_->ended.load(std::memory_order_acquire);
}

cl_int InOrderQueue::PrepareCommand(Session& session, bool) {
  if (transfer_ == nullptr) return CL_SUCCESS;
  const std::shared_ptr<TransferEnd> transfer = std::exchange(transfer_, nullptr);
  if (transfer->ended.load(std::memory_order_acquire)) return CL_SUCCESS;
  WaitList list = {transfer->done.get()};
  guards_.AppendTo(&list);
  UniqueCl<cl_event> stand_in;
  const cl_int status = cl().clEnqueueBarrierWithWaitList(
      handle.get(), static_cast<cl_uint>(list.size()), list.data(), stand_in.out());
  if (status != CL_SUCCESS) {
    transfer_ = transfer;
    return status;
  }
  Keep(session, stand_in.get(), list);
  if (NotesHeld()) held_ = Share(stand_in.get());
  last_waiting_ = Share(stand_in.get());
  last_stuck_ = Share(stand_in.get());
  NoteNewest(std::move(stand_in), KernelsEndLate());
  session.Touch(this);
  return CL_SUCCESS;
}

bool InOrderQueue::CanRun(bool) {
  if (TransferIsUnderWay()) return false;
  if (last_stuck_ && StatusOf(last_stuck_.get()) > CL_COMPLETE) return false;
  last_stuck_.reset();
  return true;
}

bool InOrderQueue::RunsUnheld() {
  if (transfer_ != nullptr) return false;
  if (last_waiting_ && StatusOf(last_waiting_.get()) <= CL_COMPLETE) last_waiting_.reset();
  return !last_waiting_;
}

cl_int InOrderQueue::EnqueueBarrier(Session& session, WaitList* list) {
  UniqueCl<cl_event> barrier;
  const cl_int status = cl().clEnqueueBarrierWithWaitList(
      handle.get(), static_cast<cl_uint>(list->size()), list->data(), barrier.out());
  if (status != CL_SUCCESS) return status;
  Keep(session, barrier.get(), *list);  // It may fail by its place, too.
  session.Touch(this);
  NoteNewest(std::move(barrier), KernelsEndLate());
  return CL_SUCCESS;
}

void InOrderQueue::AddGuardsTo(Guards* guards) {
  guards_.DropLifted();
  if (guards_.empty()) return;
  // A command that has failed by one of several user events no longer waits for the others.
  const bool pending = transfer_ != nullptr
                           ? TransferIsUnderWay()
                           : last_event_ && StatusOf(last_event_.get()) > CL_COMPLETE;
  if (!pending) guards_.Clear();
  guards->Add(guards_);
}

bool InOrderQueue::MayLeaveUnmarked(bool carries) const {
  if (carries && unmarked_carried_.size() >= kMostUnmarkedPayloads) return false;
  // Commands that may fail by a user event are watched one by one.
  return !held_ && guards_.empty();
}

void InOrderQueue::LeaveUnmarked(std::unique_ptr<Carried> carried) {
  unmarked_ = true;
  if (carried != nullptr) unmarked_carried_.push_back(std::move(carried));
}

std::unique_ptr<Carried> InOrderQueue::CollectUnmarked(std::unique_ptr<Carried> carried) {
  unmarked_ = false;
  if (unmarked_carried_.empty()) return carried;
  if (carried == nullptr) carried = std::make_unique<Carried>();
  carried->earlier = std::exchange(unmarked_carried_, {});
  return carried;
}

bool InOrderQueue::NoteEnqueued(Session& session, cl_event event, absl::Span<const cl_event> waits,
                                bool can_run) {
  if (!waits.empty()) last_waiting_ = Share(event);
  if (!can_run) last_stuck_ = Share(event);
  if (!NotesHeld()) return false;
  if (waits.empty() && held_ && StatusOf(held_.get()) == CL_COMPLETE) held_.reset();
  const bool waits_for_some = KeepWhileItWaits(session, event, waits, held_.get());
  if (!waits.empty()) held_ = Share(event);
  return waits_for_some;
}

cl_int InOrderQueue::FindReady(Session& session, const WaitList& list, UniqueCl<cl_event>* ready) {
  if (const cl_int status = PrepareCommand(session, /*after_all=*/true); status != CL_SUCCESS)
    return status;
  if (const cl_int status = Mark(session); status != CL_SUCCESS) return status;
  const cl_int last_status = last_event_ ? StatusOf(last_event_.get()) : CL_COMPLETE;
  const bool undelivered = last_event_ && !session.completions().AllDelivered(lane);
  if (list.empty() && (last_status > 0 || (last_status == CL_COMPLETE && undelivered))) {
    *ready = Share(last_event_.get());
  } else if (!list.empty() || last_status < 0) {
    const cl_int status =
        cl().clEnqueueMarkerWithWaitList(handle.get(), static_cast<cl_uint>(list.size()),
                                         list.empty() ? nullptr : list.data(), ready->out());
    if (status != CL_SUCCESS) return status;
    Keep(session, ready->get(), list);
  }
  return CL_SUCCESS;
}

void InOrderQueue::NoteTransfer(Session& session, std::shared_ptr<TransferEnd> end) {
  transfer_ = std::move(end);
  session.Touch(this);
}

void InOrderQueue::WhenReady(Session& session, WaitList, const UniqueCl<cl_event>& ready,
                             std::function<void(cl_int status)> begin) {
  if (!ready) return begin(CL_COMPLETE);
  session.completions().Then(ready.get(), std::move(begin), {lane});
}

cl_int InOrderQueue::LastEvent(Session& session, UniqueCl<cl_event>* last) {
  if (const cl_int status = PrepareCommand(session, /*after_all=*/true); status != CL_SUCCESS)
    return status;
  if (const cl_int status = Mark(session); status != CL_SUCCESS) return status;
  if (last_event_) *last = Share(last_event_.get());
  return CL_SUCCESS;
}

cl_int InOrderQueue::Mark(Session& session) {
  if (!unmarked_ && !newest_ends_late_) return CL_SUCCESS;
  UniqueCl<cl_event> mark;
  if (const cl_int status = EnqueueMark(&mark); status != CL_SUCCESS) {
    session.completions().AskForAll(lane);
    return status;
  }
  session.Touch(this);
  CompletionOrder order = {lane};
  order.tells_of_late = newest_ends_late_;
  session.completions().Publish(mark.get(), 0, /*profiling=*/false, CollectUnmarked(nullptr),
                                std::move(order));
  NoteNewest(std::move(mark), /*ends_late=*/false);
  return CL_SUCCESS;
}

cl_int InOrderQueue::EnqueueMark(UniqueCl<cl_event>* mark) {
  if (!MarksByWrites())
    return cl().clEnqueueMarkerWithWaitList(handle.get(), 0, nullptr, mark->out());
  static constexpr cl_uint kAnything = 0;
  if (!marked_) {
    cl_int status = CL_SUCCESS;
    marked_.reset(cl().clCreateBuffer(context->handle.get(), CL_MEM_HOST_WRITE_ONLY,
                                      sizeof(kAnything), nullptr, &status));
    if (status != CL_SUCCESS) return status;
  }
  return cl().clEnqueueWriteBuffer(handle.get(), marked_.get(), CL_FALSE, 0, sizeof(kAnything),
                                   &kAnything, 0, nullptr, mark->out());
}

bool InOrderQueue::IsIdle(Session& session) {
  if (Mark(session) != CL_SUCCESS || TransferIsUnderWay()) return false;
  transfer_.reset();
  if (last_event_ && StatusOf(last_event_.get()) != CL_COMPLETE) return false;
  if (!session.completions().AllDelivered(lane)) return false;
  last_event_.reset();
  in_flight->AllEnded();
  return true;
}

}  // namespace sluice::worker
