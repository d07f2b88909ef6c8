// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/queues/completions.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "daemon/worker/queues/completion_lane.h"
#include "daemon/worker/queues/printf_capture.h"
#include "daemon/worker/replies.h"
#include "proto/spin.h"

namespace sluice::worker {
namespace {

constexpr size_t kMostLeftBehind = 256;

// DriverQuirks::fails_waits_with_minus_one.
constexpr cl_int kFailedByWait = -1;

}  // namespace

namespace {

// The events that drivers are to call back for in the sessions of a pool, by numbers: a session
// that has ended takes its own away, and who calls back after that finds nothing.
struct PooledCallbacks {
  struct Entry {
    Completions* owner = nullptr;
    std::shared_ptr<void> pending;
  };
  absl::Mutex mu;
  absl::CondVar left;
  uintptr_t last ABSL_GUARDED_BY(mu) = 0;
  absl::flat_hash_map<uintptr_t, Entry> entries ABSL_GUARDED_BY(mu);
  absl::flat_hash_map<Completions*, int> at_work ABSL_GUARDED_BY(mu);  // Threads in it.
};

PooledCallbacks& AllPooled() {
  static PooledCallbacks& all = *new PooledCallbacks;
  return all;
}

}  // namespace

namespace {

// A driver whose events are polled shows a command complete for a moment before it fails it by what
// it waited for (580.159.04, H100: some microseconds after the user event was set).
constexpr absl::Duration kMoment = absl::Microseconds(50);
constexpr int64_t kLatestNs = 5'000'000;

// Of those that nobody has read. Oldest first: the last has ended. `in_doubt`: something has failed
// just now.
void ReadStatuses(bool in_order, bool in_doubt, std::vector<CompletionLane::Item>* batch) {
  bool later_completed = false;
  std::vector<CompletionLane::Item*> again;
  for (auto item = batch->rbegin(); item != batch->rend(); ++item) {
    // By its place alone: what it stands behind may have failed all the same.
    const bool inferred =
        item->status == kNotRead && later_completed && item->pending->order.ends_with_later;
    if (item->status == kNotRead)
      item->status = inferred ? CL_COMPLETE : StatusOf(item->event->get());
    if (in_doubt && !inferred && item->status == CL_COMPLETE) again.push_back(&*item);
    later_completed = in_order && (later_completed || item->status == CL_COMPLETE);
  }
  if (again.empty()) return;
  absl::SleepFor(kMoment);
  for (CompletionLane::Item* const item : again) item->status = StatusOf(item->event->get());
}

}  // namespace

cl_int StatusOf(cl_event event) {
  cl_int status = CL_COMPLETE;
  const cl_int asked = cl().clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status),
                                           &status, nullptr);
  return asked == CL_SUCCESS ? status : asked;
}

void AddTimes(const EventTimes& times, pb::Completion* completion) {
  for (const uint64_t time : {times.queued, times.submit, times.start, times.end, times.complete}) {
    completion->add_profiling(time);
  }
}

bool ReadProfiling(cl_event event, EventTimes* times) {
  const auto read = [event](cl_profiling_info param, uint64_t* out) {
    cl_ulong value = 0;
    const cl_int status =
        cl().clGetEventProfilingInfo(event, param, sizeof(value), &value, nullptr);
    *out = value;
    return status == CL_SUCCESS;
  };
  if (!read(CL_PROFILING_COMMAND_QUEUED, &times->queued) ||
      !read(CL_PROFILING_COMMAND_SUBMIT, &times->submit) ||
      !read(CL_PROFILING_COMMAND_START, &times->start) ||
      !read(CL_PROFILING_COMMAND_END, &times->end)) {
    return false;
  }
  // Of OpenCL 2.0; without child kernels it is the end.
  if (!read(CL_PROFILING_COMMAND_COMPLETE, &times->complete)) times->complete = times->end;
  return true;
}

Completions::LaneRef Completions::MakeLane(bool in_order) {
  return std::make_shared<CompletionLane>(in_order);
}

void Completions::SendCompletion(uint64_t event_id, cl_int status, const EventTimes* times) {
  if (status < 0) any_failed_.store(true, std::memory_order_relaxed);
  if (event_id == 0) return;
  pb::Reply reply;
  pb::Completion& completion = *reply.mutable_completion();
  completion.set_event_id(event_id);
  completion.set_status(status);
  if (times != nullptr) AddTimes(*times, &completion);
  replies_->Send(reply, wire::Wake::kIfAwaited);
}

void Completions::Publish(cl_event event, uint64_t event_id, bool profiling,
                          std::unique_ptr<Carried> carried, Order order) {
  if (event_id == 0 && carried == nullptr && !order.tells_of_late) return;
  auto pending = std::make_shared<Pending>();
  pending->event_id = event_id;
  pending->profiling = profiling;
  pending->carried = std::move(carried);
  pending->order = std::move(order);
  Watch(pending, event);
}

void Completions::Then(cl_event event, std::function<void(cl_int)> then, Order order) {
  auto pending = std::make_shared<Pending>();
  pending->then = std::move(then);
  pending->order = std::move(order);
  Watch(pending, event);
}

void Completions::Watch(const PendingRef& pending, cl_event event) {
  pending->owner = this;
  const auto shared = std::make_shared<const UniqueCl<cl_event>>(Share(event));
  const bool polled = polls();
  {
    absl::MutexLock lock(&mu_);
    pending->event = shared;
    pending->self = pending;
    pending->polled = polled;
    if (polled) {
      ++polled_count_;
    } else if (!pooled_) {
      pending->drivers = pending;
    }
    if (CountsLocked(*pending)) running_->Begin();
    pending->previous = last_;
    (last_ == nullptr ? first_ : last_->next) = pending.get();
    last_ = pending.get();
    if (pending->order.lane != nullptr) pending->order.lane->Add(pending);
  }
  if (polled) return;
  if (AskForCallback(pending, shared->get()) == CL_SUCCESS) return;
  // A driver without callbacks (Wine's). Waiting for the oldest on a thread of ours would not do:
  // it may depend on what we do at the end of a later one.
  set_polls();
  absl::MutexLock lock(&mu_);
  pending->drivers = nullptr;
  if (pending->ended) return;
  pending->polled = true;
  ++polled_count_;
}

cl_int Completions::AskForCallback(const PendingRef& pending, cl_event event) {
  if (!pooled_)
    return cl().clSetEventCallback(event, CL_COMPLETE, &OnDriverCallback, pending.get());
  PooledCallbacks& all = AllPooled();
  uintptr_t number = 0;
  {
    absl::MutexLock lock(&all.mu);
    number = ++all.last;
    all.entries[number] = {this, pending};
  }
  // NOLINTNEXTLINE(performance-no-int-to-ptr): a number, which nobody follows.
  void* const data = reinterpret_cast<void*>(number);
  const cl_int status = cl().clSetEventCallback(event, CL_COMPLETE, &OnPooledCallback, data);
  if (status == CL_SUCCESS) return status;
  PooledCallbacks::Entry dropped_after_unlock;
  absl::MutexLock lock(&all.mu);
  const auto found = all.entries.find(number);
  if (found != all.entries.end()) {
    dropped_after_unlock = std::move(found->second);
    all.entries.erase(found);
  }
  return status;
}

void CL_CALLBACK Completions::OnPooledCallback(cl_event, cl_int, void* number) {
  PooledCallbacks& all = AllPooled();
  PooledCallbacks::Entry entry;
  {
    absl::MutexLock lock(&all.mu);
    const auto found = all.entries.find(reinterpret_cast<uintptr_t>(number));
    if (found == all.entries.end()) return;
    entry = std::move(found->second);
    all.entries.erase(found);
    ++all.at_work[entry.owner];
  }
  entry.owner->OnEnded(std::static_pointer_cast<Pending>(std::move(entry.pending)), kNotRead);
  absl::MutexLock lock(&all.mu);
  const auto found = all.at_work.find(entry.owner);
  if (--found->second == 0) all.at_work.erase(found);
  all.left.SignalAll();
}

void Completions::ForgetCallbacks() {
  std::vector<std::shared_ptr<void>> dropped_after_unlock;
  PooledCallbacks& all = AllPooled();
  absl::MutexLock lock(&all.mu);
  for (auto entry = all.entries.begin(); entry != all.entries.end();) {
    if (entry->second.owner == this) {
      dropped_after_unlock.push_back(std::move(entry->second.pending));
      all.entries.erase(entry++);
    } else {
      ++entry;
    }
  }
  while (all.at_work.contains(this)) all.left.Wait(&all.mu);
}

bool Completions::idle() {
  absl::MutexLock lock(&mu_);
  return first_ == nullptr;
}

void CL_CALLBACK Completions::OnDriverCallback(cl_event, cl_int, void* pointer) {
  auto* const pending = static_cast<Pending*>(pointer);
  Completions* const owner = pending->owner;
  PendingRef ref;
  {
    absl::MutexLock lock(&owner->mu_);
    ref = std::move(pending->drivers);
  }
  owner->OnEnded(ref, kNotRead);
}

bool Completions::CountsLocked(const Pending& pending) const {
  return pending.order.can_run && running_ != nullptr;
}

void Completions::UnlinkLocked(Pending* pending) {
  if (CountsLocked(*pending)) running_->End();
  if (poll_next_ == pending) poll_next_ = pending->next;
  if (pending->polled) --polled_count_;
  (pending->previous == nullptr ? first_ : pending->previous->next) = pending->next;
  (pending->next == nullptr ? last_ : pending->next->previous) = pending->previous;
  pending->self = nullptr;  // The caller holds another.
}

void Completions::OnEnded(const PendingRef& pending, cl_int status) {
  CompletionLane* const lane = pending->order.lane.get();
  std::shared_ptr<const UniqueCl<cl_event>> event;
  {
    absl::MutexLock lock(&mu_);
    if (pending->ended) return;  // Found by a sweep before the driver told, or by a successor.
    pending->ended = true;
    pending->status = status;
    UnlinkLocked(pending.get());
    if (lane == nullptr) {
      event = std::move(pending->event);
    } else if (pending->taken || !lane->NoteEnded()) {
      return;
    }
  }
  if (lane != nullptr) return DeliverLane(lane);
  if (status == CL_COMPLETE && in_doubt()) {
    absl::SleepFor(kMoment);
    status = kNotRead;
  }
  Deliver(pending.get(), event->get(), status);
}

void Completions::DeliverLane(CompletionLane* lane) {
  std::vector<CompletionLane::Item> batch;
  while (true) {
    batch.clear();
    {
      absl::MutexLock lock(&mu_);
      if (!lane->Take(&batch)) return;
    }
    ReadStatuses(lane->in_order(), in_doubt(), &batch);
    {
      absl::MutexLock lock(&mu_);
      // Newest first, so that what is put back keeps its order.
      for (auto item = batch.rbegin(); item != batch.rend(); ++item) {
        Pending& pending = *item->pending;
        if (!pending.ended && item->status > 0) {
          lane->PutBack(item->pending);
          item->pending = nullptr;
          continue;
        }
        if (!pending.ended) UnlinkLocked(&pending);  // Its callback is late.
        pending.ended = true;
        pending.event = nullptr;
      }
    }
    for (const CompletionLane::Item& item : batch) {
      if (item.pending != nullptr) Deliver(item.pending.get(), item.event->get(), item.status);
    }
  }
}

void Completions::Deliver(Pending* pending, cl_event event, cl_int status) {
  if (status > 0) status = std::min(StatusOf(event), CL_COMPLETE);  // Read before its end.
  if (status == kFailedByWait && pending->order.fails_as_ours)
    status = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
  if (status < 0) any_failed_.store(true, std::memory_order_relaxed);
  if (status < kFailedByWait && status != CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST &&
      on_failed_) {
    on_failed_();
  }
  if (pending->then) {
    const std::function<void(cl_int)> then = std::exchange(pending->then, nullptr);
    return then(status);
  }
  const std::unique_ptr<Carried> carried = std::move(pending->carried);
  pending->order.share.End(/*all_before=*/status == CL_COMPLETE);
  if (status < 0 && carried != nullptr) LeaveBehind(*carried);
  if (pending->event_id == 0) return;
  printf_->Drain();
  pb::Reply reply;
  pb::Completion& completion = *reply.mutable_completion();
  completion.set_event_id(pending->event_id);
  completion.set_status(status);
  EventTimes times;
  if (pending->profiling && status == CL_COMPLETE && ReadProfiling(event, &times))
    AddTimes(times, &completion);
  const bool has_data = carried != nullptr && status == CL_COMPLETE;
  replies_->Send(reply, wire::Wake::kIfAwaited,
                 has_data ? std::string_view(carried->read_data) : std::string_view());
}

void Completions::LeaveBehind(const Carried& carried) {
  for (const std::unique_ptr<Carried>& earlier : carried.earlier) LeaveBehind(*earlier);
  if (carried.keep == nullptr) return;
  absl::MutexLock lock(&mu_);
  left_behind_.push_back(carried.keep);
  if (left_behind_.size() > kMostLeftBehind) left_behind_.pop_front();
}

bool Completions::in_doubt() const {
  return polls() && any_failed() &&
         wire::MonotonicNs() < last_failure_ns_.load(std::memory_order_relaxed) + kLatestNs;
}

void Completions::SweepFailed() {
  any_failed_.store(true, std::memory_order_relaxed);
  last_failure_ns_.store(wire::MonotonicNs(), std::memory_order_relaxed);
  Sweep(/*only_failed=*/true, nullptr);
}

void Completions::SweepEnded() { Sweep(/*only_failed=*/false, nullptr); }

void Completions::ReportEndedBefore(const Pending* end) { Sweep(/*only_failed=*/false, end); }

void Completions::Sweep(bool only_failed, const Pending* end) {
  std::vector<CompletionLane::Item> all;  // Oldest first: ends are told in that order.
  {
    absl::MutexLock lock(&mu_);
    if (end != nullptr && end->ended) return;  // No longer in the list, as what it waited for.
    for (Pending* p = first_; p != end; p = p->next) all.push_back({p->self, p->event});
  }
  for (const CompletionLane::Item& item : all) {
    const cl_int status = StatusOf(item.event->get());
    if (status < 0 || (status == CL_COMPLETE && !only_failed)) OnEnded(item.pending, status);
  }
}

// It is one of them, or of an in-order queue with one that is older.
bool Completions::IsBehindOneOf(const Looks& looks, const Pending& pending) {
  const CompletionLane* const lane = pending.order.lane.get();
  return std::any_of(looks.begin(), looks.end(), [&](const auto& look) {
    return look.first.get() == &pending ||
           (lane != nullptr && lane->in_order() && look.first->order.lane.get() == lane);
  });
}

// Adds to `looks`, from `p` on, what may have ended: of a queue in order only the oldest that may be
// asked for, since what is behind it has not ended before it. Returns where to go on.
Completions::Pending* Completions::CollectLocked(Pending* p, Looks* looks) {
  constexpr int kMostSteps = 64;
  const size_t most = looks->size() + kLooksAtOnce;
  for (int i = 0; p != nullptr && i < kMostSteps && looks->size() < most; ++i, p = p->next) {
    if (!p->polled || IsBehindOneOf(*looks, *p)) continue;
    CompletionLane* const lane = p->order.lane.get();
    const PendingRef look = lane != nullptr && lane->in_order() ? lane->FirstToLookAt() : p->self;
    if (look != nullptr) looks->emplace_back(look, look->event);
  }
  return p;
}

// An event that has not ended takes 1.5 us to ask on an H100, one that has 0.2. So a long queue is
// not asked event by event: the second, fourth, eighth, ... one is, and from where one has not ended
// the middle of what is left.
std::pair<Completions::PendingRef, cl_int> Completions::NewestEnded(const PendingRef& oldest,
                                                                    cl_int status) {
  CompletionLane* const lane = oldest->order.lane.get();
  if (lane == nullptr || !lane->in_order() || oldest->then) return {oldest, status};
  {
    absl::MutexLock lock(&mu_);
    if (!lane->IsOldest(oldest)) return {oldest, status};  // Behind what ends late.
  }
  CompletionLane::Item newest = {oldest, nullptr, status};
  size_t ended = 0;
  size_t pending = SIZE_MAX;  // The first that is known not to have, if there is one.
  for (size_t step = 1; ended + 1 < pending; step *= 2) {
    const size_t at = pending == SIZE_MAX ? ended + step : ended + (pending - ended) / 2;
    CompletionLane::Item probe;
    {
      absl::MutexLock lock(&mu_);
      probe.pending = lane->PolledAt(at);
      if (probe.pending != nullptr) probe.event = probe.pending->event;
    }
    if (probe.event == nullptr || (probe.status = StatusOf(probe.event->get())) > 0) {
      pending = at;
    } else {
      ended = at;
      newest = std::move(probe);
    }
  }
  if (ended == 0) return {oldest, status};
  absl::MutexLock lock(&mu_);
  // Poll looks at a step by itself, and sweeps before it.
  const PendingRef before_step = lane->LastBeforeStep(ended);
  if (before_step != nullptr) return {before_step, kNotRead};
  return {newest.pending, newest.status};
}

Completions::Polled Completions::Poll() {
  poller_.Assert();
  Polled polled;
  while (true) {
    Looks looks;
    {
      absl::MutexLock lock(&mu_);
      Pending* const next = CollectLocked(first_, &looks);
      // The oldest may be held for ever: the others have their turn too.
      poll_next_ = CollectLocked(poll_next_ == nullptr ? next : poll_next_, &looks);
    }
    bool any_ended = false;
    for (const auto& [pending, event] : looks) {
      const cl_int status = StatusOf(event->get());
      if (status > 0) continue;
      const auto [newest, newest_status] = NewestEnded(pending, status);
      // It may ask the client for bytes that what it waited for has brought, in another queue.
      if (newest->then) ReportEndedBefore(newest.get());
      OnEnded(newest, newest_status);
      any_ended = true;
    }
    polled.any_ended |= any_ended;
    if (any_ended) continue;
    absl::MutexLock lock(&mu_);
    polled.any_left = polled_count_ != 0;
    return polled;
  }
}

int64_t Completions::LongestRunNs() {
  constexpr int kMostSteps = 4096;
  constexpr size_t kMostLooks = 64;
  Looks looks;
  {
    absl::MutexLock lock(&mu_);
    const Pending* p = first_;
    for (int i = 0; p != nullptr && i < kMostSteps && looks.size() < kMostLooks; ++i, p = p->next) {
      if (!IsBehindOneOf(looks, *p)) looks.emplace_back(p->self, p->event);
    }
  }
  const int64_t now = wire::MonotonicNs();
  int64_t longest = 0;
  for (const auto& [pending, event] : looks) {
    if (StatusOf(event->get()) != pending->order.runs_as) continue;
    if (pending->runs_since_ns == 0) pending->runs_since_ns = now;
    int64_t since = pending->runs_since_ns;
    if (pending->order.runs_as != CL_RUNNING && pending->order.lane != nullptr) {
      absl::MutexLock lock(&mu_);
      since = std::max(since, pending->order.lane->SeenToEndNs(now));
    }
    longest = std::max(longest, now - since);
  }
  return longest;
}

void Completions::AskForAll(const LaneRef& lane) {
  absl::MutexLock lock(&mu_);
  lane->LookAtAll();
}

bool Completions::AllDelivered(const LaneRef& lane) {
  absl::MutexLock lock(&mu_);
  return lane->idle();
}

}  // namespace sluice::worker
