// SPDX-License-Identifier: Apache-2.0
// Turns between the workers of one device (broker/scheduling): two pages per worker, made by the
// broker. The worker reads one and cannot write it; the other it writes alone. So no worker can
// take a turn from another, or see that there is one.
//
//   TurnOrders   broker writes, worker reads     may I give my driver work?
//   TurnWords    worker writes, broker reads     have I work, and do I wait for my turn?
//
// A worker's word is not trusted: it can only make its own turns shorter, or have turns end for its
// device, as work that fills the device does. Where accounts have shares (kPaced), it can keep the
// device as long as its share allows.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace sluice::wire {

inline constexpr size_t kTurnPageBytes = 4096;

// Without a sign of life for so long nobody is held back: the broker is dead, or stopped.
inline constexpr int64_t kTurnSilenceNs = 20'000'000;

enum class TurnOrder : uint32_t {
  kFree = 0,  // There are no turns: a lone worker's order, and a page that nobody has written to.
  kGo = 1,
  kWait = 2,
  kSoon = 3,  // As kWait; the turn comes in a moment: look without sleep.
  // As kGo, and no more than credit_ns of work ahead of the device: what has been submitted when the
  // turn ends is waited for, and charged.
  kPaced = 4,
};

inline bool MayGo(uint32_t order) { return order <= static_cast<uint32_t>(TurnOrder::kGo); }

struct TurnOrders {
  alignas(64) std::atomic<uint32_t> order;        // A TurnOrder; workers sleep on it.
  alignas(64) std::atomic<int64_t> heartbeat_ns;  // MonotonicNs (spin.h), while there are turns.
  std::atomic<int64_t> credit_ns;                 // Of kPaced.
};

struct TurnWords {
  alignas(64) std::atomic<uint32_t> submitted;  // Commands that were given to the driver.
  std::atomic<uint32_t> running;                // Of those that can run, how many have not ended.
  std::atomic<uint32_t> waiting;                // 1: one is held back, for a turn.
  std::atomic<uint64_t> device;  // The device of the turns (DeviceObject::key); 0: of nothing.
  // Where turns do not pay, the device of shares alone; 0: of nothing.
  std::atomic<uint64_t> share_device;
  std::atomic<uint32_t> is_cpu;  // 1: that device is the host's processors.
};

static_assert(sizeof(TurnOrders) <= kTurnPageBytes && sizeof(TurnWords) <= kTurnPageBytes);
static_assert(std::atomic<uint64_t>::is_always_lock_free);

}  // namespace sluice::wire
