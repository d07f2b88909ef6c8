// SPDX-License-Identifier: Apache-2.0
#include "daemon/gateway/grant_table.h"

#include "proto/heap_span.h"

namespace sluice::gateway {

void GrantTable::Add(uint64_t event_id, uint64_t offset, uint64_t size, const wire::BulkSpan& span,
                     MappedSpan mapped) {
  absl::MutexLock lock(&mu_);
  const Key key(event_id, offset);
  if (const auto old = grants_.find(key); old != grants_.end()) {
    by_age_.erase(old->second.serial);
    grants_.erase(old);
  }
  if (grants_.size() >= max_grants_) {
    grants_.erase(by_age_.begin()->second);
    by_age_.erase(by_age_.begin());
  }
  const uint64_t serial = next_serial_++;
  by_age_.emplace(serial, key);
  grants_.emplace(key, Grant{size, 0, serial, span, std::move(mapped)});
}

std::map<GrantTable::Key, GrantTable::Grant>::const_iterator GrantTable::FindLocked(
    uint64_t event_id, uint64_t offset, uint64_t size) const {
  auto it = grants_.upper_bound(Key(event_id, offset));
  if (it == grants_.begin()) return grants_.end();
  --it;
  const bool holds = it->first.first == event_id &&
                     wire::SpanFits(offset - it->first.second, size, it->second.size);
  return holds ? it : grants_.end();
}

MappedSpan GrantTable::Find(uint64_t event_id, uint64_t offset, uint64_t size,
                            wire::BulkSpan* span) const {
  absl::MutexLock lock(&mu_);
  const auto it = FindLocked(event_id, offset, size);
  if (it == grants_.end()) return {};
  const Grant& grant = it->second;
  const uint64_t within = offset - it->first.second;
  *span = {grant.span.segment, grant.span.offset + within, size};
  return {grant.mapped.data + within, grant.mapped.mapping};
}

void GrantTable::Used(uint64_t event_id, uint64_t offset, uint64_t size) {
  absl::MutexLock lock(&mu_);
  const auto found = FindLocked(event_id, offset, size);
  if (found == grants_.end()) return;
  const auto it = grants_.find(found->first);
  it->second.used += size;
  if (it->second.used < it->second.size) return;
  by_age_.erase(it->second.serial);
  grants_.erase(it);
}

size_t GrantTable::size() const {
  absl::MutexLock lock(&mu_);
  return grants_.size();
}

}  // namespace sluice::gateway
