// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/queues/own_commands.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <utility>

#include "daemon/worker/objects.h"
#include "daemon/worker/queues/printf_capture.h"

namespace sluice::worker {
namespace {

// A chain of such commands ends one within the other's callback where a driver calls back at once:
// one after the other instead, however long it is.
void RunInTurn(std::function<void()> job) {
  thread_local std::deque<std::function<void()>> jobs;
  jobs.push_back(std::move(job));
  if (jobs.size() > 1) return;  // The first one's caller goes on with it.
  for (; !jobs.empty(); jobs.pop_front()) jobs.front()();
}

struct Wait {
  std::atomic<size_t> left;
  std::atomic<bool> told{false};
  std::function<void(cl_int status)> then;

  void Note(cl_int status) {
    if (status == CL_COMPLETE && left.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    if (told.exchange(true, std::memory_order_acq_rel)) return;
    // Keeps nothing until the last of the events, which may never end.
    std::exchange(then, nullptr)(
        status == CL_COMPLETE ? CL_COMPLETE : CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
  }
};

}  // namespace

void OwnEvents::Add(UniqueCl<cl_event> event) {
  if (events_.size() >= drop_at_) {
    DropEnded();
    drop_at_ = std::max<size_t>(64, 2 * events_.size());
  }
  events_.push_back(std::move(event));
}

void OwnEvents::DropEnded() {
  std::erase_if(events_, [](const auto& event) { return StatusOf(event.get()) <= CL_COMPLETE; });
}

std::vector<cl_event> OwnEvents::Pending() {
  DropEnded();
  std::vector<cl_event> pending;
  for (const UniqueCl<cl_event>& event : events_) pending.push_back(event.get());
  return pending;
}

void WhenAllComplete(Completions& completions, absl::Span<const cl_event> events,
                     std::function<void(cl_int status)> then) {
  const auto wait = std::make_shared<Wait>();
  wait->left = events.size() + 1;  // Ours, so that nothing is told before all are looked at.
  wait->then = std::move(then);
  for (const cl_event event : events) {
    if (StatusOf(event) == CL_COMPLETE) {
      wait->Note(CL_COMPLETE);
      continue;
    }
    completions.Then(event, [wait](cl_int status) { wait->Note(status); }, {});
    // A driver may call nobody back for it, and it may have failed before it was looked after.
    if (const cl_int status = StatusOf(event); status < 0) wait->Note(status);
  }
  wait->Note(CL_COMPLETE);
}

cl_int OwnCommand::MakeEvent(cl_context context) {
  cl_int status = CL_SUCCESS;
  done_.reset(cl().clCreateUserEvent(context, &status));
  return status;
}

void OwnCommand::SetTimed(std::shared_ptr<ContextObject> context, cl_command_queue timed) {
  context_ = std::move(context);
  timed_ = timed;
  if (timed_ != nullptr) cl().clEnqueueMarkerWithWaitList(timed_, 0, nullptr, queued_.out());
}

void OwnCommand::Begin(cl_int before) {
  RunInTurn([self = shared_from_this(), before] {
    UniqueCl<cl_event> ended;
    const std::function<cl_int(cl_event*)> start = std::exchange(self->steps_.start, nullptr);
    const cl_int began = before < 0 || start == nullptr ? before : start(ended.out());
    if (began != CL_SUCCESS || !ended) return self->Ended(began);
    self->completions_->Then(ended.get(), [self](cl_int status) { self->Ended(status); }, {});
  });
}

void OwnCommand::Ended(cl_int status) {
  if (steps_.last != nullptr) status = std::exchange(steps_.last, nullptr)(status);
  UniqueCl<cl_event> marker;
  if (status != CL_COMPLETE || timed_ == nullptr ||
      cl().clEnqueueMarkerWithWaitList(timed_, 0, nullptr, marker.out()) != CL_SUCCESS) {
    return Tell(status, nullptr);
  }
  const auto told = [self = shared_from_this(),
                     marker = std::make_shared<UniqueCl<cl_event>>(Share(marker.get()))](cl_int) {
    EventTimes times;
    EventTimes before;
    const bool timed = ReadProfiling(marker->get(), &times);
    if (timed && self->queued_ && ReadProfiling(self->queued_.get(), &before))
      times.queued = before.queued;
    self->Tell(CL_COMPLETE, timed ? &times : nullptr);
  };
  completions_->Then(marker.get(), told, {});
  cl().clFlush(timed_);
}

// Told before the event is set, behind which Finish would be told; a failure after, since what the
// client enqueues next must find it.
void OwnCommand::Tell(cl_int status, const EventTimes* times) {
  share_.End(/*all_before=*/status == CL_COMPLETE);
  printf_->Drain();
  if (status >= 0) completions_->SendCompletion(event_id_, CL_COMPLETE, times);
  cl().clSetUserEventStatus(done_.get(), std::min(status, CL_COMPLETE));
  if (status >= 0) return;
  completions_->SendCompletion(event_id_, status);
  completions_->SweepFailed();
}

}  // namespace sluice::worker
