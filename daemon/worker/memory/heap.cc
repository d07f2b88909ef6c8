// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/memory/heap.h"

#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "broker/os/local_socket.h"
#include "proto/handle_messages.h"
#include "proto/status_macros.h"

namespace sluice::worker {
namespace {

constexpr uint64_t kPage = 4096;

// A creation over the limit fails by then, whatever a command in flight still holds.
constexpr absl::Duration kLongestWait = absl::Seconds(1);

uint64_t RoundUp(uint64_t size, uint64_t to = kPage) { return (size + to - 1) & ~(to - 1); }

}  // namespace

uint64_t Heap::NextSegmentBytes(uint64_t at_least) const {
  // Eight sizes between powers of two: what was freed holds what is a little larger.
  const uint64_t size =
      std::max(segment_bytes_, RoundUp(at_least, std::max(std::bit_floor(at_least) / 8, kPage)));
  return freed_ == Freed::kKept ? size : std::max(size, RoundUp(segments_bytes_ / 4));
}

absl::Status Heap::AddSegment(uint64_t at_least) {
  const uint64_t size = NextSegmentBytes(at_least);
  auto segment = std::make_unique<Segment>();
  ASSIGN_OR_RETURN(segment->file, os::CreateSharedMemory("sluice-heap", size));
  ASSIGN_OR_RETURN(segment->mapping,
                   os::SharedMapping::Map(segment->file.get(), size, /*writable=*/true,
                                          reinterpret_cast<void*>(next_address_)));
  wire::HandleMessage message = {};
  message.magic = wire::kHandleMagic;
  message.type = wire::HandleMessageType::kHeapSegment;
  message.size = size;
  message.segment = first_segment_ + static_cast<uint32_t>(segments_.size());
  message.address = next_address_;
  const int fd = segment->file.get();
  RETURN_IF_ERROR(os::SendMessage(handle_channel_, &message, sizeof(message), &fd, 1));
  segment->free[0] = size;
  if (next_address_ != 0) next_address_ += size;
  segments_bytes_ += size;
  segments_.push_back(std::move(segment));
  return absl::OkStatus();
}

bool Heap::IsWithinLimit(uint64_t bytes) const {
  return used_bytes_ + bytes <= RoundUp(max_bytes_);
}

void Heap::AwaitReturns(uint64_t bytes) {
  if (IsWithinLimit(bytes)) return;
  const auto is_enough = [this, bytes]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return IsWithinLimit(bytes) || returning_.empty();
  };
  mu_.AwaitWithTimeout(absl::Condition(&is_enough), kLongestWait);
}

absl::StatusOr<HeapSpan> Heap::Allocate(uint64_t size) {
  if (size == 0 || size > max_bytes_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("heap span of ", size, " bytes; the limit is ", max_bytes_));
  }
  const uint64_t rounded = RoundUp(size);
  absl::MutexLock lock(&mu_);
  AwaitReturns(rounded);
  if (!IsWithinLimit(rounded)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("heap holds ", used_bytes_, " of ", max_bytes_, " bytes"));
  }
  for (int attempt = 0; attempt < 2; ++attempt) {
    for (size_t i = 0; i < segments_.size(); ++i) {
      Segment& segment = *segments_[i];
      for (auto it = segment.free.begin(); it != segment.free.end(); ++it) {
        const auto [offset, room] = *it;
        if (room < rounded) continue;
        segment.free.erase(it);
        if (room > rounded) segment.free[offset + rounded] = room - rounded;
        used_bytes_ += rounded;
        return HeapSpan{first_segment_ + static_cast<uint32_t>(i), offset, size,
                        segment.mapping.data() + offset};
      }
    }
    RETURN_IF_ERROR(AddSegment(rounded));
  }
  return absl::InternalError("a new heap segment has no room");
}

void Heap::Free(const HeapSpan& span) {
  if (span.segment == 0) return;
  const uint64_t rounded = RoundUp(span.size);
  absl::MutexLock lock(&mu_);
  Segment& segment = *segments_[span.segment - first_segment_];
  if (freed_ == Freed::kZeroed)
    os::ZeroSharedMemory(segment.file.get(), span.data, span.offset, rounded);
  used_bytes_ -= rounded;
  returning_.erase({span.segment, span.offset});
  auto [it, inserted] = segment.free.emplace(span.offset, rounded);
  auto next = std::next(it);
  if (next != segment.free.end() && it->first + it->second == next->first) {
    it->second += next->second;
    segment.free.erase(next);
  }
  if (it != segment.free.begin()) {
    auto previous = std::prev(it);
    if (previous->first + previous->second == it->first) {
      previous->second += it->second;
      segment.free.erase(it);
    }
  }
}

std::shared_ptr<const HeapSpan> Heap::Hold(const HeapSpan& span) {
  return {new HeapSpan(span), [this](const HeapSpan* held) {
            Free(*held);
            delete held;
          }};
}

void Heap::LeaveToDriver(std::shared_ptr<const HeapSpan> held) {
  {
    absl::MutexLock lock(&mu_);
    returning_.emplace(held->segment, held->offset);
  }
  held.reset();  // Not with the lock held: it may be the last.
}

HeapSpan Heap::WholeSegment(uint32_t number) const {
  absl::MutexLock lock(&mu_);
  const os::SharedMapping& mapping = segments_[number - first_segment_]->mapping;
  return {number, 0, mapping.size(), mapping.data()};
}

uint64_t Heap::used_bytes() const {
  absl::MutexLock lock(&mu_);
  return used_bytes_;
}

}  // namespace sluice::worker
