// SPDX-License-Identifier: Apache-2.0
// Keeps an event that waits for others, by its list or its place in the queue, alive until those
// have ended, for drivers that free (DriverQuirks::frees_failed_commands). Such a driver frees a
// command that has failed by one of its dependencies and touches it again, at once and when another
// one fails ("PTHREAD ERROR", the process aborts). With the event alive it finds it failed, and all
// is well. An event that has failed is kept beyond that, until its queue and context go, since a
// thread of the driver's that tells of a failure may not be through. Session thread only.
#pragma once

#include <cstddef>
#include <deque>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "daemon/worker/queues/completions.h"

namespace sluice::worker {

class KeptEvents {
 public:
  void Keep(cl_event event, absl::Span<const cl_event> waits) {
    for (; !kept_.empty() && HasEnded(kept_.front()); kept_.pop_front()) Drop(&kept_.front());
    Entry entry{Share(event), {}};
    for (const cl_event wait : waits) entry.waits.push_back(Share(wait));
    kept_.push_back(std::move(entry));
  }

  // A queue or a context was released, and at its end both: what has ended no longer holds them.
  void Sweep() {
    failed_.clear();
    std::deque<Entry> all;
    all.swap(kept_);
    for (Entry& entry : all) {
      if (HasEnded(entry)) {
        Drop(&entry);
      } else {
        kept_.push_back(std::move(entry));
      }
    }
  }

 private:
  static constexpr size_t kMostFailed = 256;

  struct Entry {
    UniqueCl<cl_event> event;
    absl::InlinedVector<UniqueCl<cl_event>, 2> waits;
  };

  // Complete means that all it waited for is; failed, that one of them has.
  static bool HasEnded(const Entry& entry) {
    const cl_int status = StatusOf(entry.event.get());
    if (status >= 0) return status == CL_COMPLETE;
    for (const UniqueCl<cl_event>& wait : entry.waits) {
      if (StatusOf(wait.get()) > 0) return false;
    }
    return true;
  }

  void Drop(Entry* entry) {
    if (StatusOf(entry->event.get()) == CL_COMPLETE) return;
    failed_.push_back(std::move(*entry));
    if (failed_.size() > kMostFailed) failed_.pop_front();
  }

  std::deque<Entry> kept_;
  std::deque<Entry> failed_;
};

}  // namespace sluice::worker
