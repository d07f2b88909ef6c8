// SPDX-License-Identifier: Apache-2.0
#include "daemon/gateway/heap_map.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/os/close_elsewhere.h"
#include "broker/os/foreign_memory.h"
#include "proto/heap_span.h"
#include "proto/status_macros.h"

namespace sluice::gateway {
namespace {

// Each is a mapping, of which Linux lets a process have 65530 (vm.max_map_count): 256 sessions, as
// many as the broker admits unless told otherwise, use half of them. A worker's heap makes do with
// far fewer, however its client allocates (daemon/worker/memory/heap.h).
constexpr size_t kMaxSegments = 128;

// Memory whose pages may not be there when they are touched is refused, huge pages above all: the
// fault would be the gateway's, for every session.
absl::Status CheckOrdinaryPages(int fd) {
  ASSIGN_OR_RETURN(const os::ForeignMemory memory, os::DescribeForeignMemory(fd));
  if (memory.kind == os::ForeignMemoryKind::kSealed) return absl::OkStatus();
  return absl::InvalidArgumentError("heap segment is not ordinary shared memory");
}

}  // namespace

absl::Status HeapMap::Add(uint32_t segment, os::UniqueFd file, uint64_t size) {
  if (segment == 0) return absl::InvalidArgumentError("heap segment without a number");
  absl::Status checked = os::VerifySharedMemory(file.get(), size);
  if (checked.ok()) checked = CheckOrdinaryPages(file.get());
  if (!checked.ok()) {
    os::CloseElsewhere(std::move(file));  // Whatever it is.
    return checked;
  }
  absl::MutexLock lock(&mu_);
  if (segments_.contains(segment))
    return absl::InvalidArgumentError(absl::StrCat("heap segment ", segment, " a second time"));
  if (segments_.size() >= kMaxSegments) {
    return absl::ResourceExhaustedError(absl::StrCat("more than ", kMaxSegments, " heap segments"));
  }
  if (size > max_bytes_ - bytes_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("heap segments of ", bytes_, " and ", size, " bytes: more than ", max_bytes_));
  }
  ASSIGN_OR_RETURN(os::SharedMapping mapping,
                   os::SharedMapping::Map(file.get(), size, /*writable=*/true));
  segments_.emplace(segment, std::make_shared<const os::SharedMapping>(std::move(mapping)));
  bytes_ += size;
  changed_.SignalAll();
  return absl::OkStatus();
}

void HeapMap::End() {
  absl::MutexLock lock(&mu_);
  ended_ = true;
  changed_.SignalAll();
}

MappedSpan HeapMap::Resolve(const wire::BulkSpan& span, absl::Duration patience) {
  if (span.segment == 0) return {};
  const absl::Time deadline = absl::Now() + patience;
  absl::MutexLock lock(&mu_);
  auto it = segments_.find(span.segment);
  while (it == segments_.end()) {
    if (ended_ || changed_.WaitWithDeadline(&mu_, deadline)) return {};
    it = segments_.find(span.segment);
  }
  const std::shared_ptr<const os::SharedMapping>& mapping = it->second;
  uint8_t* data = wire::SpanPointer(mapping->data(), mapping->size(), span.offset, span.size);
  return {data, data == nullptr ? nullptr : mapping};
}

}  // namespace sluice::gateway
