// SPDX-License-Identifier: Apache-2.0
//
// The places where the worker wants the bytes of each transfer: filled from Grant frames on their
// way to the client, asked when the client's TransferChunk comes back with the bytes. Only what was
// granted can be written, and only there.
//
// Owner: a StreamSession. Thread-safe: replies and commands pass on different threads.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "daemon/gateway/heap_map.h"
#include "proto/frame.h"

namespace sluice::gateway {

class GrantTable {
 public:
  // Beyond this many the oldest is forgotten: grants of transfers that failed are never used up.
  static constexpr size_t kMaxGrants = 1 << 18;

  explicit GrantTable(size_t max_grants = kMaxGrants) : max_grants_(max_grants) {}

  // Bytes [offset, offset + size) of the event's data belong at `span`, which is mapped at
  // `mapped`.
  void Add(uint64_t event_id, uint64_t offset, uint64_t size, const wire::BulkSpan& span,
           MappedSpan mapped);

  // The place of a chunk that lies within one grant; `data` is null if there is none. `*span` is
  // the part of the grant's span.
  MappedSpan Find(uint64_t event_id, uint64_t offset, uint64_t size, wire::BulkSpan* span) const;

  // The chunk has been put there. Once all of a grant has, it is forgotten.
  void Used(uint64_t event_id, uint64_t offset, uint64_t size);

  size_t size() const;

 private:
  using Key = std::pair<uint64_t, uint64_t>;  // Event, offset.
  struct Grant {
    uint64_t size = 0;
    uint64_t used = 0;
    uint64_t serial = 0;
    wire::BulkSpan span;
    MappedSpan mapped;
  };

  // The grant that holds the range, or the end.
  std::map<Key, Grant>::const_iterator FindLocked(uint64_t event_id, uint64_t offset,
                                                  uint64_t size) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const size_t max_grants_;
  mutable absl::Mutex mu_;
  std::map<Key, Grant> grants_ ABSL_GUARDED_BY(mu_);
  std::map<uint64_t, Key> by_age_ ABSL_GUARDED_BY(mu_);
  uint64_t next_serial_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace sluice::gateway
