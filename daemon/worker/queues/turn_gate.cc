// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/queues/turn_gate.h"

#include <algorithm>
#include <utility>

#include "broker/os/doorbell.h"
#include "proto/spin.h"

namespace sluice::worker {
namespace {

using wire::TurnOrder;

// Between looks at what is under way, and at whether the broker lives.
constexpr int64_t kLookNs = 200'000;
constexpr int64_t kNothingToLookAtNs = 5'000'000;
// At a turn that comes in a moment.
constexpr int64_t kLookOnNs = 50'000;
// How often to look whether the turn has ended, while the worker's own work is awaited.
constexpr int64_t kLookAtOrderNs = 1'000'000;
// Where events are polled, a command that takes longer than the first is looked at so many times
// while it runs. Shorter ones are looked at without sleep.
constexpr int64_t kLongCommandNs = 200'000;
constexpr int64_t kLooksAtCommand = 8;
// Work that does not end may wait for what is held back behind it.
constexpr int64_t kNoProgressNs = 1'000'000'000;

}  // namespace

void TurnGate::Attach(os::SharedMapping orders, os::SharedMapping words, Pays pays) {
  orders_page_ = std::move(orders);
  words_page_ = std::move(words);
  AttachForTesting(reinterpret_cast<const wire::TurnOrders*>(orders_page_.data()),
                   reinterpret_cast<wire::TurnWords*>(words_page_.data()), pays);
}

void TurnGate::AttachForTesting(const wire::TurnOrders* orders, wire::TurnWords* words, Pays pays) {
  orders_ = orders;
  words_ = words;
  running_.Attach(orders, &words->running);
  pays_ = pays;
}

void TurnGate::Use(uint64_t device_key, bool switches_are_dear, bool is_cpu) {
  const absl::MutexLock lock(&mu_);  // Once for each context.
  const bool turns = pays_ == Pays::kEverywhere || (pays_ == Pays::kWhereDear && switches_are_dear);
  if (device_key == 0 || has_turns_ || (device_.load(std::memory_order_relaxed) != 0 && !turns))
    return;
  has_turns_ = turns;
  device_.store(device_key, std::memory_order_relaxed);
  words_->is_cpu.store(is_cpu ? 1 : 0, std::memory_order_relaxed);
  words_->share_device.store(turns ? 0 : device_key, std::memory_order_release);
  words_->device.store(turns ? device_key : 0, std::memory_order_release);
}

bool TurnGate::IsSilent() const {
  return wire::MonotonicNs() - orders_->heartbeat_ns.load(std::memory_order_relaxed) >
         wire::kTurnSilenceNs;
}

// The work under way is less than the credit, or nothing has ended since then: the command may be
// what that work waits for. 0: it has not waited yet.
bool TurnGate::HasCredit(int64_t since_ns) const {
  const auto count = static_cast<int64_t>(running_.count());
  if (count == 0) return true;
  const int64_t command_ns = running_.command_ns();
  const int64_t credit_ns = orders_->credit_ns.load(std::memory_order_relaxed);
  if (command_ns != 0 && count * command_ns < credit_ns) return true;
  return since_ns != 0 &&
         wire::MonotonicNs() - std::max(since_ns, running_.last_end_ns()) > kNoProgressNs;
}

void TurnGate::AwaitAnEnd(const Meanwhile& meanwhile) {
  const uint32_t count = running_.count();
  if (!meanwhile.look()) return running_.AwaitEnd(count, kLookAtOrderNs);
  // Nobody else looks.
  if (running_.command_ns() > kLongCommandNs && running_.count() == count)
    running_.AwaitEnd(count, std::min(running_.command_ns() / kLooksAtCommand, kLookNs));
}

void TurnGate::SayWaiting(bool waiting, bool* said) {
  if (!shared_) return words_->waiting.store(waiting ? 1 : 0, std::memory_order_relaxed);
  if (waiting == *said) return;
  *said = waiting;
  absl::MutexLock lock(&mu_);
  waiting_ += waiting ? 1 : -1;
  words_->waiting.store(waiting_ > 0 ? 1 : 0, std::memory_order_relaxed);
}

bool TurnGate::Wait(const Meanwhile& meanwhile) {
  if (IsSilent()) return false;
  // Only its address goes to the system, which reads.
  auto* const word = const_cast<std::atomic<uint32_t>*>(&orders_->order);
  const auto paced = static_cast<uint32_t>(TurnOrder::kPaced);
  int64_t since_ns = 0;
  bool woken = false;
  bool said = false;
  uint32_t order = 0;
  while (true) {
    order = word->load(std::memory_order_acquire);
    if (wire::MayGo(order) || (order == paced && HasCredit(since_ns)) || IsSilent()) break;
    // A worker that has its turn, and no more credit, does not wait for a turn.
    SayWaiting(order != paced, &said);
    if (since_ns == 0) {
      since_ns = wire::MonotonicNs();
      meanwhile.flush();
      continue;
    }
    if (order == paced) {
      AwaitAnEnd(meanwhile);
      continue;
    }
    const bool any_left = meanwhile.look();
    if (order == static_cast<uint32_t>(TurnOrder::kSoon)) {
      if (!std::exchange(woken, true)) meanwhile.wake_client();
      if (wire::AdaptiveSpin::For(kLookOnNs,
                                  [&] { return word->load(std::memory_order_acquire) != order; })) {
        continue;
      }
    }
    os::FutexWait(word, order, ~0U, any_left ? kLookNs : kNothingToLookAtNs);
  }
  SayWaiting(false, &said);
  return order == paced;
}

}  // namespace sluice::worker
