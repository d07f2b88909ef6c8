// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/queues/turn_gate.h"

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

}  // namespace

void TurnGate::Attach(os::SharedMapping orders, os::SharedMapping words, bool everywhere) {
  orders_page_ = std::move(orders);
  words_page_ = std::move(words);
  AttachForTesting(reinterpret_cast<const wire::TurnOrders*>(orders_page_.data()),
                   reinterpret_cast<wire::TurnWords*>(words_page_.data()), everywhere);
}

void TurnGate::AttachForTesting(const wire::TurnOrders* orders, wire::TurnWords* words,
                                bool everywhere) {
  orders_ = orders;
  words_ = words;
  everywhere_ = everywhere;
}

void TurnGate::Use(uint64_t device_key, bool switches_are_dear) {
  if (device_ != 0 || device_key == 0 || !(switches_are_dear || everywhere_)) return;
  device_ = device_key;
  words_->device.store(device_key, std::memory_order_relaxed);
}

bool TurnGate::IsSilent() const {
  return wire::MonotonicNs() - orders_->heartbeat_ns.load(std::memory_order_relaxed) >
         wire::kTurnSilenceNs;
}

void TurnGate::Wait(const Meanwhile& meanwhile) {
  if (IsSilent()) return;
  words_->waiting.store(1, std::memory_order_relaxed);
  meanwhile.flush();
  // Only its address goes to the system, which reads.
  auto* const word = const_cast<std::atomic<uint32_t>*>(&orders_->order);
  bool woken = false;
  while (true) {
    const uint32_t order = word->load(std::memory_order_acquire);
    if (wire::MayGo(order) || IsSilent()) break;
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
  words_->waiting.store(0, std::memory_order_relaxed);
}

}  // namespace sluice::worker
