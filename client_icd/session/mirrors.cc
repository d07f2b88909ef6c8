// SPDX-License-Identifier: Apache-2.0
#include "client_icd/session/mirrors.h"

#include <iterator>

#include "proto/heap_span.h"

namespace sluice::client {

void Mirrors::Add(const uint8_t* memory, size_t bytes, uint64_t mem_id) {
  absl::MutexLock lock(&mu_);
  entries_[memory] = {bytes, mem_id};
  count_.store(entries_.size(), std::memory_order_relaxed);
}

void Mirrors::Remove(const uint8_t* memory) {
  absl::MutexLock lock(&mu_);
  entries_.erase(memory);
  count_.store(entries_.size(), std::memory_order_relaxed);
}

bool Mirrors::Find(const uint8_t* memory, uint64_t bytes, MirrorPlace* place) const {
  if (count_.load(std::memory_order_relaxed) == 0) return false;
  absl::MutexLock lock(&mu_);
  auto it = entries_.upper_bound(memory);
  if (it == entries_.begin()) return false;
  --it;
  const uint64_t offset = static_cast<uint64_t>(memory - it->first);
  if (!wire::SpanFits(offset, bytes, it->second.bytes)) return false;
  *place = {it->second.mem_id, offset};
  return true;
}

}  // namespace sluice::client
