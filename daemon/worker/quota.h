// SPDX-License-Identifier: Apache-2.0
// The limits of a session's use, and how much of each it uses. For comfort and honest errors:
// behind these counts stand the limits that the broker's cgroups and rlimits set, and its grants of
// an account's device memory, since a worker is as hostile as its client. Thread-safe.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "daemon/worker/memory/memory_grant.h"

namespace sluice::worker {

inline constexpr uint64_t kNoLimit = UINT64_MAX;

struct Limits {
  uint64_t memory_bytes = uint64_t{64} << 30;
  uint64_t account_memory_bytes = 0;  // Of all sessions of the account; 0: no limit.
  uint64_t objects = 1 << 20;
  uint64_t program_bytes = 256 << 20;
  uint64_t in_flight = 0;  // Commands accepted and not ended; 0: no limit.
  uint64_t build_ms = 0;   // Of one build, compilation or link; 0: no limit.
  uint64_t kernel_ms = 0;  // Of one command on the device (queues/kernel_watch.h); 0: no limit.
};

// An honest client may have so much in flight beyond its limit: it counts no Finish and no build.
inline constexpr uint64_t kInFlightSlack = 1024;

class Quota {
 public:
  explicit Quota(const Limits& limits) : limits_(limits), grant_(&memory_bytes_) {}

  const Limits& limits() const { return limits_; }

  // False, and nothing charged, if that would exceed the session's limit, or the account's.
  bool ChargeMemory(uint64_t bytes) {
    uint64_t used = memory_bytes_.load(std::memory_order_relaxed);
    do {
      if (bytes > limits_.memory_bytes || used > limits_.memory_bytes - bytes) return false;
    } while (!memory_bytes_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
    if (!grant_.attached() || grant_.Cover(used + bytes)) return true;
    ReturnMemory(bytes);
    return false;
  }
  void ReturnMemory(uint64_t bytes) { memory_bytes_.fetch_sub(bytes, std::memory_order_relaxed); }
  MemoryGrant& grant() { return grant_; }
  // So much may be charged from now on (Lease).
  uint64_t MemoryLeft() {
    const uint64_t used = memory_bytes();
    const uint64_t left = limits_.memory_bytes > used ? limits_.memory_bytes - used : 0;
    return grant_.attached() ? std::min(left, grant_.Promise()) : left;
  }
  uint64_t memory_bytes() const { return memory_bytes_.load(std::memory_order_relaxed); }

  // Commands in flight (in_flight.h).
  void AddCommand() { in_flight_.fetch_add(1, std::memory_order_relaxed); }
  void EndCommands(uint64_t count) { in_flight_.fetch_sub(count, std::memory_order_relaxed); }
  uint64_t in_flight() const { return in_flight_.load(std::memory_order_relaxed); }
  // False once there are so many that the client does not keep to its limit.
  bool TakesCommands() const {
    const uint64_t bound = limits_.in_flight + limits_.in_flight / 4 + kInFlightSlack;
    return limits_.in_flight == 0 || in_flight() < bound;
  }

 private:
  const Limits limits_;
  std::atomic<uint64_t> memory_bytes_ = 0;
  std::atomic<uint64_t> in_flight_ = 0;
  MemoryGrant grant_;
};

}  // namespace sluice::worker
