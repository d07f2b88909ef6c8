// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/queues/enqueuer.h"

#include <algorithm>
#include <utility>

#include "daemon/worker/memory/mirrors.h"
#include "daemon/worker/pool/pool_parts.h"
#include "daemon/worker/queues/out_of_order_queue.h"
#include "proto/heap_span.h"

namespace sluice::worker {
namespace {

// A driver may never end a command that is enqueued behind an event which has failed already.
bool HasFailed(const Session& session, cl_event event) {
  return session.completions().any_failed() && StatusOf(event) < 0;
}

// Null if the driver makes none: the times are not available then (section 5.14), but all else is.
cl_command_queue TimedQueue(const QueueObject& queue) {
  UniqueCl<cl_command_queue>& timed = queue.context->timed_queues[queue.device->handle];
  if (!timed) {
    cl_int status = CL_SUCCESS;
    timed.reset(cl().clCreateCommandQueue(queue.context->handle.get(), queue.device->handle,
                                          CL_QUEUE_PROFILING_ENABLE, &status));
  }
  return timed.get();
}

}  // namespace

Enqueuer::Enqueuer(Session& session, const pb::Enqueue& on, Zeros zeros)
    : session_(session),
      event_id_(on.event_id()),
      named_(on.event_id() != 0 && !on.unnamed()),
      mirror_mem_id_(on.mirror_mem_id()),
      mirror_offset_(on.mirror_offset()) {
  queue_ = Find<QueueObject>(on.queue_id());
  counted_ = session.quota().limits().kernel_ms != 0;
  if (!session.MayAccept()) Fail(CL_OUT_OF_RESOURCES);
  // Before the driver has been asked for anything.
  if (named_) Fail(session.CheckNew(event_id_));
  has_wait_list_ = on.wait_event_ids_size() != 0;
  for (const uint64_t id : on.wait_event_ids()) {
    EventObject* const event = session.objects().Peek<EventObject>(id);
    if (event == nullptr) {
      Fail(session.forgot_refused() ? CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST
                                    : CL_INVALID_EVENT_WAIT_LIST);
    } else if (event->is_complete()) {
      continue;
    } else if (event->handle.get() == nullptr || HasFailed(session, event->handle.get())) {
      Fail(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);  // Refused: its dependents fail as
                                                           // dependents do.
    } else if (queue_ != nullptr && event->context_number != queue_->context->number) {
      Fail(CL_INVALID_CONTEXT);
    } else {
      waits_.push_back(event->handle.get());
      waits_for_stuck_ = waits_for_stuck_ || !event->can_run;
      waits_elsewhere_ =
          waits_elsewhere_ || (queue_ != nullptr && event->ends_with_later_of != queue_->lane);
      if (ok() && queue_->device->quirks.aborts_on_failed_wait) CollectGuards(event);
    }
  }
  if (ok() && queue_->device->quirks.aborts_on_failed_wait) GuardWaits();
  if (ok() && HasWaited() && queue_->NeedsAList()) WaitForTheEnded();
  if (ok() && zeros == Zeros::kPaid) Fail(PayOrReplaceZeros(nullptr));
}

cl_int Enqueuer::PayOrReplaceZeros(MemoryObject* written) {
  OwedZeros& zeros = queue_->context->zeros;
  // Only where the write cannot fail alone, what comes after it in its queue finds it done, and
  // others may wait for it: it waits for nothing itself.
  const bool replaces = written != nullptr && waits_.empty() &&
                        queue_->device->quirks.faults_end_contexts && written->owes_zeros &&
                        queue_->RunsUnheld();
  if (replaces) {
    replaces_zeros_of_ = written;
    return CL_SUCCESS;
  }
  const cl_int paid = PayZeros(queue_->context.get());
  if (paid != CL_SUCCESS || zeros.defined.empty()) return paid;
  return WaitForDefinedMemory();
}

// By a barrier, and not by the command's own list: that is the application's, and a driver may judge
// a list by its last event (clSetUserEventStatus.one_of_two of the conformance tables).
cl_int Enqueuer::WaitForDefinedMemory() {
  OwedZeros& zeros = queue_->context->zeros;
  WaitList list;
  cl_int failed = CL_SUCCESS;
  std::erase_if(zeros.defined, [&](const OwedZeros::Definition& one) {
    if (one.queue == queue_->lane) return false;  // Behind it, in order.
    const cl_int status = StatusOf(one.event.get());
    if (status < 0) failed = status;
    if (status > 0 && one.number > queue_->waits_for_defined) list.push_back(one.event.get());
    return status == CL_COMPLETE;
  });
  if (failed != CL_SUCCESS) return CL_OUT_OF_RESOURCES;
  if (list.empty()) return CL_SUCCESS;
  if (const cl_int status = queue_->EnqueueBarrier(session_, &list); status != CL_SUCCESS)
    return status;
  queue_->waits_for_defined = zeros.last_number;
  return CL_SUCCESS;
}

void Enqueuer::CountUnwatched(Session& session, QueueObject* queue) {
  if (!queue->uncounted || !queue->CanRun(/*after_all=*/true)) return;
  queue->uncounted = false;
  UniqueCl<cl_event> last;
  if (queue->LastEvent(session, &last) != CL_SUCCESS || !last) return;
  CompletionOrder order = {queue->lane, /*after_all=*/true};
  order.can_run = true;
  session.completions().Then(
      last.get(), [](cl_int) {}, std::move(order));
}

void Enqueuer::TakeTurn() {
  can_run_ = !waits_for_stuck_ && queue_->CanRun(after_all_);
  if (!can_run_) return;
  TurnGate& turns = session_.turns();
  if (turns.MustWait(queue_->device->key)) {
    TurnGate::Meanwhile meanwhile;
    meanwhile.flush = [this] {
      std::vector<QueueObject*> queues = session_.touched();
      if (std::find(queues.begin(), queues.end(), queue_) == queues.end()) queues.push_back(queue_);
      for (QueueObject* const queue : queues) CountUnwatched(session_, queue);
      session_.FlushTouched();
    };
    meanwhile.look = [this] {
      Completions& completions = session_.completions();
      return completions.polls() && completions.Poll().any_left;
    };
    meanwhile.wake_client = [this] { session_.replies().WakeWaiter(); };
    counted_ |= turns.Wait(meanwhile);
  }
  turns.NoteSubmitted();
}

void Enqueuer::NoteDefinition(cl_event event) {
  TakePlaceOfZeros(replaces_zeros_of_);
  queue_->context->zeros.Define(queue_->lane, Share(event));
}

void Enqueuer::CollectGuards(EventObject* event) {
  if (event->is_user && event->guard == nullptr && StatusOf(event->handle.get()) > CL_COMPLETE) {
    event->guard = Guard::Make(queue_->context->handle.get());
    if (event->guard != nullptr) event->guards.Add(event->guard);
  }
  guards_.Add(event->guards);
}

void Enqueuer::GuardWaits() {
  queue_->AddGuardsTo(&guards_);
  // Without a list it waits for one command at most: the one before it, or the barrier.
  if (!waits_.empty()) guards_.AppendTo(&waits_);
}

cl_int Enqueuer::AddEvent(cl_event event, std::shared_ptr<CompletionLane> ends_with_later_of) {
  queue_->NoteGuards(guards_);
  if (!named_) return CL_SUCCESS;
  auto object = std::make_shared<EventObject>();
  object->handle = Share(event);
  object->context_number = queue_->context->number;
  object->ends_with_later_of = std::move(ends_with_later_of);
  object->guards = guards_;
  object->can_run = can_run_;
  return session_.Add(event_id_, std::move(object));
}

void Enqueuer::WaitForTheEnded() {
  cl_int status = CL_SUCCESS;
  ended_.reset(cl().clCreateUserEvent(queue_->context->handle.get(), &status));
  if (status == CL_SUCCESS) status = cl().clSetUserEventStatus(ended_.get(), CL_COMPLETE);
  if (status != CL_SUCCESS) return Fail(status);
  waits_.push_back(ended_.get());
}

bool Enqueuer::NeedsEvent(const Carried* carried) {
  if (event_id_ != 0 || !waits_.empty() || replaces_zeros_of_ != nullptr || counted_) return true;
  if (session_.options().sync) return true;
  if (!queue_->MayLeaveUnmarked(carried != nullptr)) return true;
  return !session_.more_follows() && !queue_->MarksByWrites();
}

HandlerResult Enqueuer::LeaveUnmarked(std::unique_ptr<Carried> carried) {
  session_.Touch(queue_);
  queue_->uncounted |= can_run_;
  queue_->in_flight->AcceptUntracked();
  queue_->LeaveUnmarked(std::move(carried));
  return CL_SUCCESS;
}

HandlerResult Enqueuer::Publish(UniqueCl<cl_event> event, std::unique_ptr<Carried> carried) {
  session_.Touch(queue_);
  carried = queue_->CollectUnmarked(std::move(carried));
  const bool ends_with_later = queue_->EndsWithLater() && !waits_elsewhere_;
  if (const cl_int status = AddEvent(event.get(), ends_with_later ? queue_->lane : nullptr);
      status != CL_SUCCESS) {
    return status;
  }
  const bool waits = queue_->NoteEnqueued(session_, event.get(), waits_, can_run_);
  // A share that nobody ends would keep its command in flight for ever.
  CommandShare share;
  if (event_id_ == 0 && carried == nullptr) {
    queue_->in_flight->AcceptUntracked();
  } else {
    share = queue_->in_flight->Accept(after_all_);
  }
  CompletionOrder order = {
      queue_->lane,
      after_all_,
      waits && fails_as_ours_ && queue_->device->quirks.fails_waits_with_minus_one,
      ends_with_later,
      can_run_,
      queue_->device->quirks.never_says_running ? CL_SUBMITTED : CL_RUNNING,
      std::move(share)};
  // Not where its times are asked for, which the driver has when it says that it has ended.
  const bool ends_late = queue_->KernelsEndLate() && !ends_alone_ && !queue_->profiling;
  order.ends_late = ends_late;
  const bool asked = event_id_ != 0 || carried != nullptr;
  queue_->uncounted |= can_run_ && !asked && !counted_;
  if (counted_ && !asked) {
    session_.completions().Then(
        event.get(), [](cl_int) {}, std::move(order));
  } else {
    session_.completions().Publish(event.get(), event_id_, queue_->profiling, std::move(carried),
                                   std::move(order));
  }
  // In the debug mode the command is awaited here, unless it may wait for somebody else.
  if (const cl_event ended = event.get(); session_.options().sync && can_run_)
    cl().clWaitForEvents(1, &ended);
  queue_->NoteNewest(std::move(event), ends_late);
  // At once: what comes next may wait for somebody who waits for this one.
  if (ends_late && (asked || counted_)) (void)queue_->Mark(session_);
  return CL_SUCCESS;
}

bool Enqueuer::IsIdle() { return !queue_->profiling && IsIdleOrTimed(); }

bool Enqueuer::IsIdleOrTimed() { return waits_.empty() && queue_->IsIdle(session_); }

HandlerResult Enqueuer::CompleteNow(std::string_view payload, const EventTimes* times) {
  if (event_id_ == 0) return CL_SUCCESS;
  if (named_) {
    const cl_int status = session_.Add(event_id_, std::make_shared<EventObject>());
    if (status != CL_SUCCESS) return status;
  }
  pb::Reply reply;
  reply.mutable_completion()->set_event_id(event_id_);
  reply.mutable_completion()->set_status(CL_COMPLETE);
  if (times != nullptr) AddTimes(*times, reply.mutable_completion());
  session_.printf().Drain();
  session_.replies().Send(reply, wire::Wake::kIfAwaited, payload);
  return CL_SUCCESS;
}

bool Enqueuer::MayRunByList() const { return queue_->AsOutOfOrder() != nullptr; }

HandlerResult Enqueuer::RunWithoutWork() {
  if (MayRunByList()) return RunByList();
  if (IsIdle()) return CompleteNow({});
  return Run([](cl_command_queue queue, cl_uint waits, const cl_event* list, cl_event* event) {
    return cl().clEnqueueMarkerWithWaitList(queue, waits, list, event);
  });
}

HandlerResult Enqueuer::RunByList(OwnCommand::Steps steps) {
  OutOfOrderQueue& queue = *queue_->AsOutOfOrder();
  if (waits_.empty() && !queue.IsBarred() && !queue.profiling && steps.start == nullptr)
    return CompleteNow({});
  const auto command = std::make_shared<OwnCommand>(&session_.completions(), &session_.printf(),
                                                    event_id_, std::move(steps));
  if (const cl_int made = command->MakeEvent(queue.context->handle.get()); made != CL_SUCCESS)
    return made;
  if (const cl_int status = AddEvent(command->event()); status != CL_SUCCESS) return status;
  if (queue.profiling) command->SetTimed(queue.context, TimedQueue(queue));
  command->SetShare(queue.in_flight->Accept(/*after_all=*/false));
  queue.NoteOwnCommand(Share(command->event()));
  queue.WhenReady(session_, waits_, /*ready=*/{},
                  [command](cl_int status) { command->Begin(status); });
  return CL_SUCCESS;
}

HandlerResult Enqueuer::RunWhenReady(std::function<cl_int(cl_event* ended)> start,
                                     std::function<cl_int(cl_int ended)> last) {
  if (MayRunByList()) return RunByList({std::move(start), std::move(last)});
  UniqueCl<cl_event> ready;
  if (const cl_int status = queue_->FindReady(session_, waits_, &ready); status != CL_SUCCESS)
    return status;
  cl_int status = CL_SUCCESS;
  UniqueCl<cl_event> done(cl().clCreateUserEvent(queue_->context->handle.get(), &status));
  if (status != CL_SUCCESS) return status;
  Completions* const completions = &session_.completions();
  // Shared by the callbacks: the event goes with the last of them.
  const auto end = [completions,
                    event = std::make_shared<UniqueCl<cl_event>>(Share(done.get()))](cl_int ended) {
    cl().clSetUserEventStatus(event->get(), ended < 0 ? ended : CL_COMPLETE);
    if (ended < 0) completions->SweepFailed();
  };
  const auto begin = [completions, end, start = std::move(start),
                      last = std::move(last)](cl_int before) {
    UniqueCl<cl_event> ended;
    const cl_int began =
        before < 0 ? CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST : start(ended.out());
    if (began != CL_SUCCESS || !ended) return end(last(began));
    completions->Then(ended.get(), [end, last](cl_int status) { end(last(status)); }, {});
  };
  // Before what stands for the command, behind which the queue's lane would deliver it.
  if (ready) completions->Then(ready.get(), begin, {queue_->lane});
  SetFailsAsOurs();
  // Stands for the command in the driver's queue, as for a transfer.
  waits_.assign(1, done.get());
  waits_elsewhere_ = waits_for_stuck_ = true;
  guards_.AppendTo(&waits_);
  HandlerResult published =
      Run([](cl_command_queue queue, cl_uint waits, const cl_event* list, cl_event* event) {
        return cl().clEnqueueBarrierWithWaitList(queue, waits, list, event);
      });
  if (!ready) begin(CL_COMPLETE);
  return published;
}

HandlerResult Enqueuer::RunPrinting(const Launch& launch) {
  PoolParts* const pool = session_.options().pool;
  PrintingTurns* const turns = &pool->printing;
  Replies* const replies = &session_.replies();
  UniqueCl<cl_event> ready;
  if (const cl_int status = queue_->FindReady(session_, waits_, &ready); status != CL_SUCCESS)
    return status;
  cl_int status = CL_SUCCESS;
  UniqueCl<cl_event> turn(cl().clCreateUserEvent(queue_->context->handle.get(), &status));
  if (status != CL_SUCCESS) return status;
  // Of these two bits the second says that the turn is to be given back.
  constexpr int kGranted = 1, kRefused = 2;
  const auto state = std::make_shared<std::atomic<int>>(0);
  const auto granted = [turns, replies, state,
                        event = std::make_shared<UniqueCl<cl_event>>(Share(turn.get()))] {
    cl().clSetUserEventStatus(event->get(), CL_COMPLETE);
    if (state->fetch_or(kGranted) == kRefused) turns->End(replies);
  };
  // However that has ended: the kernel fails by what it waits for, and gives back its turn.
  queue_->WhenReady(session_, waits_, ready,
                    [turns, replies, granted](cl_int) { turns->Ask(replies, granted); });
  if (waits_.empty()) guards_.AppendTo(&waits_);
  waits_.push_back(turn.get());
  waits_elsewhere_ = waits_for_stuck_ = true;
  bool launched = false;
  const HandlerResult result =
      Run([&](cl_command_queue queue, cl_uint waits, const cl_event* list, cl_event* event) {
        const cl_int given = launch(queue, waits, list, event);
        launched = given == CL_SUCCESS;
        if (launched) {
          const auto end = [pool, replies, late = queue_->device->quirks.prints_late](cl_int) {
            if (late) pool->contexts.WaitForText();
            pool->printing.End(replies);
          };
          session_.completions().Then(*event, end, {queue_->lane});
        }
        return given;
      });
  if (!launched && state->fetch_or(kRefused) == kGranted) turns->End(replies);
  return result;
}

HandlerResult Enqueuer::RunInMirror(const TransferPlan& plan) {
  const MemoryObject* const buffer = session_.objects().Peek<MemoryObject>(mirror_mem_id_);
  const std::shared_ptr<const Mirror> mirror = buffer == nullptr ? nullptr : buffer->mirror();
  if (mirror == nullptr) return CL_INVALID_MEM_OBJECT;
  const HeapSpan& span = mirror->span();
  if (!wire::SpanFits(mirror_offset_, plan.total_bytes, span.size)) return CL_INVALID_VALUE;
  auto carried = std::make_unique<Carried>();
  carried->keep = std::const_pointer_cast<Mirror>(mirror);
  return Run(
      [&](cl_command_queue queue, cl_uint waits, const cl_event* list, cl_event* event) {
        return Transfers::EnqueueWhole(queue, plan, span.data + mirror_offset_, waits, list, event);
      },
      std::move(carried));
}

HandlerResult Enqueuer::RunTransfer(TransferPlan plan) {
  if (names_mirror()) return RunInMirror(plan);
  if (event_id_ == 0) return absl::InvalidArgumentError("transfer without an event");
  plan.event_id = event_id_;
  QueueObject& queue = *queue_;
  if (queue.profiling) plan.queue = TimedQueue(queue);
  plan.profiling = plan.queue != nullptr;
  if (!plan.profiling) plan.queue = queue.context->own_queue.get();

  UniqueCl<cl_event> ready;
  if (const cl_int status = queue.FindReady(session_, waits_, &ready); status != CL_SUCCESS)
    return status;
  std::shared_ptr<TransferEnd> end;
  plan.share = queue.in_flight->Accept(/*after_all=*/false);
  if (const cl_int status = session_.transfers().Begin(plan, &end); status != CL_SUCCESS) {
    plan.share.End(/*all_before=*/false);
    return status;
  }
  if (const cl_int status = AddEvent(end->done.get()); status != CL_SUCCESS) return status;
  Transfers* const transfers = &session_.transfers();
  const auto begin = [transfers, event_id = event_id_](cl_int status) {
    transfers->Ready(event_id, status);
  };
  queue.NoteTransfer(session_, std::move(end));
  queue.WhenReady(session_, waits_, ready, begin);
  return CL_SUCCESS;
}

}  // namespace sluice::worker
