// SPDX-License-Identifier: Apache-2.0
// The session's shared heap: memory objects of CPU devices, staging for large transfers. Made of
// segments, sealed memfds of fixed size that are announced to the client over the handle channel
// before any frame names them. Only the worker allocates; what the client writes there is data,
// never structure. Freed memory goes back to the system, so that it is zero when it is used again.
// Not that of the pinned heap, whose pages a driver holds: what the device sees there would no
// longer be what the mapping shows. Thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "broker/os/scoped_handle.h"
#include "broker/os/shared_memory.h"

namespace sluice::worker {

struct HeapSpan {
  uint32_t segment = 0;  // 0: not in the heap.
  uint64_t offset = 0;
  uint64_t size = 0;
  uint8_t* data = nullptr;
};

class Heap {
 public:
  // The state of freed memory: zeroed, as Allocate promises, or kept as it is, pages and bytes.
  enum class Freed { kZeroed, kKept };

  // `handle_channel` is where segments are announced; it stays the caller's. Segments are numbered
  // first_segment, first_segment + 1, ... With a `base_address` they are mapped from there on, and
  // the client is told to do the same.
  Heap(int handle_channel, uint64_t max_bytes, uint32_t first_segment = 1,
       uint64_t base_address = 0, Freed freed = Freed::kZeroed,
       uint64_t segment_bytes = kUsualSegmentBytes)
      : handle_channel_(handle_channel),
        max_bytes_(std::min(max_bytes, kMostBytes)),
        first_segment_(first_segment),
        freed_(freed),
        segment_bytes_(segment_bytes),
        next_address_(base_address) {}

  // `size` bytes of zeros (kKept: of anything), aligned to 4096. kResourceExhausted over the limit;
  // before it says so it waits a while for spans that are on their way back.
  absl::StatusOr<HeapSpan> Allocate(uint64_t size);
  void Free(const HeapSpan& span);
  // An allocated span, freed once nobody holds it any more.
  std::shared_ptr<const HeapSpan> Hold(const HeapSpan& span);
  // A held span that only the driver holds from now on. It gives it back on its own thread, which
  // may be a moment after it has told the end of the last command that used it.
  void LeaveToDriver(std::shared_ptr<const HeapSpan> held);

  uint64_t used_bytes() const;
  // The whole segment of a span of this heap.
  HeapSpan WholeSegment(uint32_t number) const;

 private:
  // So that no sum of sizes can wrap, whatever the limit says.
  static constexpr uint64_t kMostBytes = uint64_t{1} << 62;
  static constexpr uint64_t kUsualSegmentBytes = 64 << 20;

  struct Segment {
    os::UniqueFd file;
    os::SharedMapping mapping;
    std::map<uint64_t, uint64_t> free;  // offset -> size, never adjacent to each other
  };

  // A segment is there for good, a mapping in each process that sees it, of which each may have so
  // many. Segments grow with the heap, so that their number is some fifty for 256 GiB whatever the
  // client does. Not where pages are kept, and pinned: that many would cost real memory.
  uint64_t NextSegmentBytes(uint64_t at_least) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status AddSegment(uint64_t at_least) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Until `bytes` more are within the limit, or nothing is on its way back, or for kLongestWait.
  void AwaitReturns(uint64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool IsWithinLimit(uint64_t bytes) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const int handle_channel_;
  const uint64_t max_bytes_;
  const uint32_t first_segment_;
  const Freed freed_;
  const uint64_t segment_bytes_;
  mutable absl::Mutex mu_;
  std::vector<std::unique_ptr<Segment>> segments_ ABSL_GUARDED_BY(mu_);
  uint64_t segments_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t next_address_ ABSL_GUARDED_BY(mu_);  // 0: anywhere.
  uint64_t used_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  // The segments and offsets of what is left to the driver.
  absl::flat_hash_set<std::pair<uint32_t, uint64_t>> returning_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sluice::worker
