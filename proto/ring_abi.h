// SPDX-License-Identifier: Apache-2.0
// The byte-exact layout of a ring: one direction, one producer, one consumer, in a sealed memfd of
// kRingFileBytes.
//
//   0    produced   (producer)  bytes ever written
//   8    rung_ns    (producer)  when it last rang the bell, by CLOCK_MONOTONIC
//   64   consumed   (consumer)  bytes ever taken
//   128  sleep      (consumer)  what the consumer sleeps for, and its doorbell
//   192  space      (producer)  whether the producer waits for room, and its doorbell
//   4096 data                   kRingCapacity bytes: position p lies at p % kRingCapacity
//
// Pieces begin at multiples of 8.
//
// Sleeping (state, then produced: seq_cst):
//
//   consumer   state = kSleeps*; look again; FutexWait(bell, seen)
//   producer   produced = ...; if state asks for this frame: state = kAwake, ++bell, FutexWake
//
// Of the two threads a client has for replies, one waits with bit kBitWaiter (an application's
// thread), the other with kBitBackground; state says which of them a ring of the bell is for.
//
// Trust: each side believes only its own cursor. The other's is read once per look and checked
// against the capacity.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace sluice::wire {

inline constexpr uint64_t kRingCapacity = 1 << 20;
inline constexpr size_t kRingDataOffset = 4096;
inline constexpr size_t kRingFileBytes = kRingDataOffset + kRingCapacity;

enum RingSleep : uint32_t {
  kAwake = 0,
  kSleepsLazily = 1,    // Background: only urgent frames, or a ring a quarter full.
  kSleepsForEvent = 2,  // A waiting thread: the completion of awaited_event, any answer, urgent
                        // frames, or half full.
  kSleepsForAny = 3,    // A waiting thread, or the worker's decoder: every frame.
  kSleepsEagerly = 4,   // Background, with callbacks to run: every frame.
};

inline constexpr uint32_t kBitBackground = 1;
inline constexpr uint32_t kBitWaiter = 2;

struct RingShared {
  alignas(64) std::atomic<uint64_t> produced;
  std::atomic<int64_t> rung_ns;
  alignas(64) std::atomic<uint64_t> consumed;
  alignas(64) std::atomic<uint32_t> sleep_state;
  std::atomic<uint32_t> bell;
  std::atomic<uint64_t> awaited_event;
  alignas(64) std::atomic<uint32_t> producer_waits;
  std::atomic<uint32_t> space_bell;
};
static_assert(sizeof(RingShared) == 256);
static_assert(offsetof(RingShared, consumed) == 64 && offsetof(RingShared, sleep_state) == 128 &&
              offsetof(RingShared, producer_waits) == 192);
static_assert(std::atomic<uint64_t>::is_always_lock_free &&
              std::atomic<uint32_t>::is_always_lock_free);

// How much a frame concerns a sleeping consumer.
enum class Wake {
  kIfAwaited,  // A completion: only who waits for its event.
  kWaiter,     // An answer: whoever waits.
  kUrgent,     // Needs the client's work: also the background thread.
};

}  // namespace sluice::wire
