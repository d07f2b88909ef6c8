// SPDX-License-Identifier: Apache-2.0
//
// The worker's heap as the gateway sees it: the segments that came over the session's handle
// channel. They are mapped at once, since a process may have fewer descriptors than mappings. The
// worker is as hostile as its client: descriptors are verified before they are mapped, and every
// span is checked against its segment.
//
// Owner: a StreamSession. Thread-safe: the watcher adds, the session's threads resolve. A pointer
// lasts as long as the mapping it came with.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "broker/os/scoped_handle.h"
#include "broker/os/shared_memory.h"
#include "proto/frame.h"

namespace sluice::gateway {

// A span's bytes, and what keeps them mapped.
struct MappedSpan {
  uint8_t* data = nullptr;  // Null: not to be had.
  std::shared_ptr<const os::SharedMapping> mapping;
};

class HeapMap {
 public:
  // All segments together may have `max_bytes`: the gateway's address space is every session's.
  // Not what the machine has of memory: buffers may be larger that are never filled. 128 sessions
  // of so much fit a process.
  explicit HeapMap(uint64_t max_bytes = uint64_t{1} << 38) : max_bytes_(max_bytes) {}

  // A segment was announced. An error is a violation by the worker.
  absl::Status Add(uint32_t segment, os::UniqueFd file, uint64_t size);
  // No more will come: Resolve need not wait for any.
  void End();

  // A segment is announced before a frame that names it, but through another channel. On an
  // overloaded machine that may take many seconds: waits for it at most `patience`.
  MappedSpan Resolve(const wire::BulkSpan& span_untrusted,
                     absl::Duration patience = absl::Seconds(30));

 private:
  const uint64_t max_bytes_;
  absl::Mutex mu_;
  absl::CondVar changed_;
  uint64_t bytes_ ABSL_GUARDED_BY(mu_) = 0;
  absl::flat_hash_map<uint32_t, std::shared_ptr<const os::SharedMapping>> segments_
      ABSL_GUARDED_BY(mu_);
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace sluice::gateway
