// SPDX-License-Identifier: Apache-2.0
// Finds the mirrors of a session's buffers by address (MemoryPlacement in proto/command.proto):
// memory that the daemon's driver reaches by itself. A read or write of the application's in such
// memory therefore sends no bytes, only the place. Owned by the session. Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace sluice::client {

struct MirrorPlace {
  uint64_t mem_id = 0;
  uint64_t offset = 0;
};

class Mirrors {
 public:
  void Add(const uint8_t* memory, size_t bytes, uint64_t mem_id);
  void Remove(const uint8_t* memory);

  // False if [memory, memory + bytes) does not lie in one of them as a whole.
  bool Find(const uint8_t* memory, uint64_t bytes, MirrorPlace* place) const;

 private:
  struct Entry {
    size_t bytes;
    uint64_t mem_id;
  };

  // Their number, so that sessions without any take no lock. Relaxed: who has a pointer into a
  // mirror got it after Add.
  std::atomic<size_t> count_{0};
  mutable absl::Mutex mu_;
  std::map<const uint8_t*, Entry> entries_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sluice::client
