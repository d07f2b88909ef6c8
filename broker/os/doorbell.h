// SPDX-License-Identifier: Apache-2.0
//
// Sleeping and waking on a 32-bit word in shared memory (a futex; 2 us a round trip, against 4 for
// an eventfd). The peer may write anything into the word and may wake at any time, or never. So a
// waiter always checks its condition again; by a timeout, or the end of file on the handle channel,
// it notices that the peer is gone. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>

namespace sluice::os {

// Sleeps while `*word == expected`, until a wake with a common bit in `bitset` (not 0), or until
// `timeout_ns` has passed (-1 = no timeout). True when woken or the word differed, false on
// timeout. May return true without a wake.
bool FutexWait(std::atomic<uint32_t>* word, uint32_t expected, uint32_t bitset, int64_t timeout_ns);

// Wakes at most `count` waiters that have a bit in common with `bitset`. Returns how many.
int FutexWake(std::atomic<uint32_t>* word, int count, uint32_t bitset);

}  // namespace sluice::os
