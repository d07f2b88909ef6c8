// SPDX-License-Identifier: Apache-2.0
// How many commands a session has in flight, from the call that enqueues to the news of the end, so
// that the call over the daemon's limit is the one that fails. It fails with CL_OUT_OF_RESOURCES,
// without a wait, since the next call may be the one that lets a command go on
// (../objects/README.md).
//
// The end of a command with an event is told. Of the others nothing is: their queue counts them as
// *uncovered* until a later command covers them. Such is one with an event that comes after all
// before it (in an in-order queue any, else a marker or barrier without a list), or a Finish. Every
// check_batch() uncovered commands a queue sends a Finish that nobody waits for. The worker counts
// the same way (daemon/worker/queues/in_flight.h), never more than we do, and takes a client that
// has more in flight than it may for a liar.
//
// Owned by Session. Thread-safe.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace sluice::client {

class InFlight {
 public:
  // A limit of 0 is none: then nothing is counted.
  explicit InFlight(uint64_t limit)
      : limit_(limit), check_batch_(limit == 0 ? 0 : std::clamp<uint64_t>(limit / 16, 1, 64)) {}

  bool counts() const { return limit_ != 0; }
  // So many uncovered commands of one queue call for a Finish.
  uint64_t check_batch() const { return check_batch_; }

  // False, and nothing taken, at the limit.
  bool Take() {
    if (!counts()) return true;
    if (in_flight_.fetch_add(1, std::memory_order_relaxed) < limit_) return true;
    Return(1);
    return false;
  }
  // One that must not fail halfway: the second command of one call.
  void TakeAlways() {
    if (counts()) in_flight_.fetch_add(1, std::memory_order_relaxed);
  }
  void Return(uint64_t commands) {
    if (counts()) in_flight_.fetch_sub(commands, std::memory_order_relaxed);
  }

  uint64_t in_flight() const { return in_flight_.load(std::memory_order_relaxed); }

 private:
  const uint64_t limit_;
  const uint64_t check_batch_;
  std::atomic<uint64_t> in_flight_{0};
};

}  // namespace sluice::client
