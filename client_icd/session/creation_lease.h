// SPDX-License-Identifier: Apache-2.0
// The objects that a session may still create without asking: the worker says in its answers how
// far away the session's limits are (Lease). Creations within that cannot fail by them, so that
// nobody has to wait for the answer. Objects that are released meanwhile count with the next
// answer. Thread-safe.
#pragma once

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "proto/command.pb.h"

namespace sluice::client {

class CreationLease {
 public:
  struct Amount {
    uint64_t bytes = 0;
    uint64_t objects = 0;
  };

  // Counts one object with so much memory. False, and nothing counted, if it must be asked for.
  bool Take(uint64_t bytes) {
    absl::MutexLock lock(&mu_);
    if (bytes > end_.bytes - taken_.bytes || taken_.objects >= end_.objects) return false;
    taken_.bytes += bytes;
    ++taken_.objects;
    return true;
  }

  // Of what has been counted when a creation that waits is sent: before its answer's Renew.
  Amount Taken() const {
    absl::MutexLock lock(&mu_);
    return taken_;
  }
  // A quarter stays: of what another thread counted before `taken` was read and sent after the
  // question, the worker did not know.
  void Renew(const Amount& taken, const v1::Lease& lease) {
    absl::MutexLock lock(&mu_);
    end_.bytes = End(taken.bytes, taken_.bytes, lease.memory_bytes());
    end_.objects = End(taken.objects, taken_.objects, lease.objects());
  }

 private:
  static uint64_t End(uint64_t then, uint64_t now, uint64_t left) {
    const uint64_t granted = left - left / 4;
    const uint64_t end = granted > UINT64_MAX - then ? UINT64_MAX : then + granted;
    return end > now ? end : now;
  }

  mutable absl::Mutex mu_;
  Amount taken_ ABSL_GUARDED_BY(mu_);  // Never less than before; of end_, never more.
  Amount end_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sluice::client
