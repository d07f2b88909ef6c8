// SPDX-License-Identifier: Apache-2.0
#include "client_icd/session/command_stream.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "broker/os/threads.h"
#include "client_icd/base/client_log.h"
#include "client_icd/session/pending_releases.h"
#include "client_icd/session/session.h"

namespace sluice::client {
namespace {

// Commands up to this size are encoded on the stack.
constexpr size_t kStackMessageBytes = 1024;
// How long to look for what the worker expects, beside a fraction of what has been waited already.
constexpr int64_t kExpectedNs = 200'000;
constexpr int64_t kNapNs = 100'000;
constexpr int64_t kNapsNs = 10'000'000;

}  // namespace

namespace {

const char* NameOf(const pb::Command& command) {
  switch (command.body_case()) {
#define COMMAND(Name, field, reply) \
  case pb::Command::k##Name:        \
    return #Name;
#include "proto/commands.inc"
    case pb::Command::BODY_NOT_SET:
      break;
  }
  return "";
}

}  // namespace

CommandStream::Waits CommandStream::waits() const {
  return {waited_answers_.load(std::memory_order_relaxed),
          waited_commands_.load(std::memory_order_relaxed),
          waited_ns_.load(std::memory_order_relaxed)};
}

void CommandStream::NoteWait(std::atomic<uint64_t>* count, int64_t began_ns, const char* what) {
  const int64_t ns = wire::MonotonicNs() - began_ns;
  count->fetch_add(1, std::memory_order_relaxed);
  waited_ns_.fetch_add(ns, std::memory_order_relaxed);
  if (ClientLogs(ClientLogLevel::kDebug))
    ClientLog(ClientLogLevel::kDebug, absl::StrCat("waited ", ns / 1000, " us for ", what));
}

bool CommandStream::Post(const pb::Command& command, std::string_view payload) {
  return Send(command, payload, 0, {}, /*wake=*/true, nullptr);
}

bool CommandStream::PostQuietly(const pb::Command& command) {
  return Send(command, {}, 0, {}, /*wake=*/false, nullptr);
}

bool CommandStream::Send(const pb::Command& command, std::string_view payload, uint32_t flags,
                         const wire::BulkSpan& bulk, bool wake, PendingCall* call) {
  if (transport_->lost()) return false;
  const size_t bytes = command.ByteSizeLong();
  uint8_t on_stack[kStackMessageBytes];
  std::unique_ptr<uint8_t[]> on_heap;
  uint8_t* message = on_stack;
  if (bytes > sizeof(on_stack)) {
    on_heap.reset(new uint8_t[bytes]);
    message = on_heap.get();
  }
  command.SerializeWithCachedSizesToArray(message);

  wire::FrameHeader header = {};
  header.message_bytes = static_cast<uint32_t>(bytes);
  header.flags = flags;
  header.payload_bytes = payload.size();
  header.bulk_segment = bulk.segment;
  header.bulk_offset = bulk.offset;
  header.bulk_bytes = bulk.size;
  absl::MutexLock lock(&send_mu_);
  header.sequence = next_sequence_++;
  if (call != nullptr) {
    absl::MutexLock pending_lock(&pending_mu_);
    if (failed_all_) return false;
    pending_calls_[header.sequence] = call;
  }
  if (transport_->Send(header, {reinterpret_cast<const char*>(message), bytes}, payload, wake))
    return true;
  if (call != nullptr) {
    absl::MutexLock pending_lock(&pending_mu_);
    // If it is gone, FailAll has it and finishes it: the caller must wait for that.
    return pending_calls_.erase(header.sequence) == 0;
  }
  return false;
}

cl_int CommandStream::Call(const pb::Command& command, std::string_view payload,
                           pb::Answer* answer) {
  PendingCall call{answer, CL_DEVICE_NOT_AVAILABLE};
  if (!Send(command, payload, 0, {}, /*wake=*/true, &call)) return session_->lost_code();
  const int64_t began_ns = wire::MonotonicNs();
  WaitUntil(call.done, 0);
  NoteWait(&waited_answers_, began_ns, NameOf(command));
  return call.status;
}

bool CommandStream::Track(PendingCommand* command) {
  if (transport_->lost()) return false;
  absl::MutexLock lock(&pending_mu_);
  if (failed_all_) return false;
  pending_events_.try_emplace(command->id(), Tracked{Ref<Object>(command->owner()), command});
  return true;
}

bool CommandStream::Untrack(const PendingCommand* command) {
  if (session_->forked()) return true;
  const Tracked dropped_after_unlock = TakePending(command->id());
  return static_cast<bool>(dropped_after_unlock);
}

std::vector<Ref<Object>> CommandStream::Pending() {
  std::vector<Ref<Object>> events;
  absl::MutexLock lock(&pending_mu_);
  events.reserve(pending_events_.size());
  for (const auto& [id, tracked] : pending_events_) events.push_back(tracked.owner);
  return events;
}

cl_int CommandStream::WaitFor(PendingCommand* command) {
  if (!command->ended()) {
    const int64_t began_ns = wire::MonotonicNs();
    WaitUntil(command->ended_flag(), command->id());
    NoteWait(&waited_commands_, began_ns, "a command");
  }
  PendingReleases::Await();
  return command->status();
}

void CommandStream::AwaitHandled() {
  if (session_->forked()) return;
  absl::MutexLock lock(&drain_mu_);
}

void CommandStream::Poll() {
  if (transport_->lost()) {
    FailAll();
  } else if (transport_->HasFrame()) {
    Drain(nullptr);
  }
}

// Waits until `done`. Returns earlier only where nothing can ever be done: in the child of a fork,
// and at the end of a process whose transport has lost its threads.
void CommandStream::WaitUntil(const std::atomic<bool>& done, uint64_t event_id) {
  if (session_->forked() || (transport_->lost() && os::OtherThreadsWereEnded())) return;
  Waiter self{&done, event_id, {}};
  bool hold = false;
  {
    absl::MutexLock lock(&wait_mu_);
    waiters_.push_back(&self);
    waiter_count_.store(waiters_.size(), std::memory_order_seq_cst);
    if (holder_ != nullptr) {
      RearmLocked();  // The holder must see our frames too; what is there already did not ring for
                      // us.
      if (transport_->HasFrame()) transport_->Interrupt(wire::kBitWaiter);
    }
    std::atomic_thread_fence(std::memory_order_seq_cst);  // Pairs with the fence in Drain.
    while (holder_ != nullptr && !done.load(std::memory_order_acquire)) self.wake.Wait(&wait_mu_);
    hold = holder_ == nullptr && !done.load(std::memory_order_acquire);
    if (hold) holder_ = &self;
  }
  if (hold) Hold(&self);
  Leave(&self);
}

void CommandStream::Hold(Waiter* self) {
  const std::atomic<bool>& done = *self->done;
  const int64_t began_ns = wire::MonotonicNs();
  while (true) {
    transport_->Arm(wire::kAwake, 0);  // Nobody sleeps: the worker need not ring.
    Drain(self);
    if (done.load(std::memory_order_acquire)) return;
    if (transport_->lost()) {
      FailAll();
      return;
    }
    const auto there = [&] {
      return transport_->HasFrame() || done.load(std::memory_order_acquire);
    };
    if (spin_.Until(there)) continue;
    uint32_t ticket;
    {
      absl::MutexLock lock(&wait_mu_);
      ticket = RearmLocked();
    }
    // Another thread may have drained our frame: it sets `done`, then rings the bell, so that
    // either we see the one here or Wait sees the other.
    if (done.load(std::memory_order_acquire)) return;
    Sleep(ticket, began_ns);
    if (there()) {
      spin_.NoteCame(transport_->rung_ns_untrusted());
    } else {
      // Rung for nothing: the worker expects an end about now
      // (daemon/worker/queues/end_forecast.h).
      wire::AdaptiveSpin::For(kExpectedNs + (wire::MonotonicNs() - began_ns) / 32, there);
    }
  }
}

// At first in naps, where a device's answer is awaited: a processor that sleeps for longer loses its
// caches, which costs the next launch 40 us (H200). A nap costs some microseconds.
void CommandStream::Sleep(uint32_t ticket, int64_t began_ns) {
  while (spin_.patient() && wire::MonotonicNs() < began_ns + kNapsNs &&
         !transport_->Nap(ticket, wire::kBitWaiter, kNapNs)) {
  }
  transport_->Wait(ticket, wire::kBitWaiter);  // Not if the bell has rung.
}

void CommandStream::Leave(Waiter* self) {
  bool drain = false;
  {
    absl::MutexLock lock(&wait_mu_);
    waiters_.erase(std::find(waiters_.begin(), waiters_.end(), self));
    waiter_count_.store(waiters_.size(), std::memory_order_seq_cst);
    if (holder_ == self) holder_ = nullptr;
    if (holder_ != nullptr) return;
    // Those that are done have been signalled; the role goes to one that is not.
    for (Waiter* waiter : waiters_) {
      if (waiter->done->load(std::memory_order_acquire)) continue;
      waiter->wake.Signal();
      return;
    }
    RearmLocked();
    if (background_parked_) background_wake_.Signal();
    drain = transport_->HasFrame();  // It came while nobody was rung for.
  }
  if (drain) Drain(nullptr);
}

// Says whom the worker should ring for, as things stand.
uint32_t CommandStream::RearmLocked() {
  if (holder_ == nullptr)
    return transport_->Arm(eager_ > 0 ? wire::kSleepsEagerly : wire::kSleepsLazily, 0);
  const bool any = waiters_.size() > 1 || eager_ > 0;
  return transport_->Arm(any ? wire::kSleepsForAny : wire::kSleepsForEvent, holder_->event_id);
}

void CommandStream::SignalDone(const Waiter* self) {
  absl::MutexLock lock(&wait_mu_);
  for (Waiter* waiter : waiters_) {
    if (waiter == self || !waiter->done->load(std::memory_order_acquire)) continue;
    if (waiter == holder_) {
      transport_->Interrupt(wire::kBitWaiter);
    } else {
      waiter->wake.Signal();
    }
  }
}

void CommandStream::WakeWaiters() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (waiter_count_.load(std::memory_order_seq_cst) != 0) SignalDone(nullptr);
}

void CommandStream::AddEager() {
  absl::MutexLock lock(&wait_mu_);
  if (++eager_ != 1) return;
  RearmLocked();
  // Frames that came before the change did not ring.
  if (transport_->HasFrame())
    transport_->Interrupt(holder_ == nullptr ? wire::kBitBackground : wire::kBitWaiter);
}

void CommandStream::DropEager() {
  absl::MutexLock lock(&wait_mu_);
  --eager_;
}

void CommandStream::RunReplyThread() {
  while (!transport_->lost()) {
    Drain(nullptr);
    uint32_t ticket;
    {
      absl::MutexLock lock(&wait_mu_);
      if (holder_ != nullptr) {
        background_parked_ = true;
        while (holder_ != nullptr) background_wake_.Wait(&wait_mu_);
        background_parked_ = false;
        continue;
      }
      ticket = RearmLocked();
    }
    transport_->Wait(ticket, wire::kBitBackground);
  }
  FailAll();
}

// Not send_mu_: the child sends nothing, and a send may wait for the worker.
void CommandStream::HoldForFork(ForkLocks* locks, absl::Time deadline) {
  locks->Hold(&drain_mu_, deadline);
  locks->Hold(&pending_mu_, deadline);
  locks->Hold(&wait_mu_, deadline);
}

void CommandStream::FailAll() {
  if (session_->forked()) return;
  const Handling handling;
  absl::flat_hash_map<uint64_t, Tracked> commands;
  {
    // The drain lock: a transfer that is being copied must end before its event does.
    absl::MutexLock drain_lock(&drain_mu_);
    HandleLastWords();
    absl::flat_hash_map<uint64_t, PendingCall*> calls;
    {
      absl::MutexLock lock(&pending_mu_);
      if (failed_all_) return;
      failed_all_ = true;
      commands.swap(pending_events_);
      calls.swap(pending_calls_);
    }
    for (const auto& [sequence, call] : calls) FinishCall(call, session_->lost_code());
    for (const auto& [id, command] : commands) {
      if (!command->StaysOpen()) command->End(session_->lost_code(), {});
    }
  }
  SignalDone(nullptr);
  session_->OnLost();
}

}  // namespace sluice::client
