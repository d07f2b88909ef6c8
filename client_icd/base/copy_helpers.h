// SPDX-License-Identifier: Apache-2.0
// Threads that help to copy large data between the application's memory and the shared heap: one
// thread moves some 12 GB/s, a GPU takes 54 from pinned memory. They help only where processors are
// idle, and never on fewer than four: what would be won there is taken from the driver or from the
// application's own threads.
//
// Started with the first copy that is worth it, detached as all of ours, asleep when there is
// nothing to do. After a piece of work they look for the next one for a moment, since waking up
// takes longer than a piece. One set per process, for ever; in the child of a fork it is no use,
// and everybody copies alone. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"
#include "broker/os/threads.h"

namespace sluice::client {

// As memcpy, past the processor's caches where it can: for what a device will read and this process
// will not. A device reads memory twice as fast as another processor's cache.
void StreamingCopy(uint8_t* to, const uint8_t* from, size_t bytes);
// Less stays in the caches: the worker's driver may be one that runs on this processor.
inline constexpr uint64_t kWorthStreaming = 1 << 20;

class CopyHelpers {
 public:
  static CopyHelpers& Get();

  // Tests say themselves how many processors there are.
  explicit CopyHelpers(int processors = os::UsableProcessors());
  ~CopyHelpers();  // The threads leave by themselves.
  CopyHelpers(const CopyHelpers&) = delete;
  CopyHelpers& operator=(const CopyHelpers&) = delete;

  using Piece = absl::FunctionRef<void(uint64_t offset, uint64_t bytes)>;

  // Calls piece for all of [0, total), in parts, on this thread and on those that help; returns
  // when all is done. `piece` must only copy.
  void Run(uint64_t total, Piece piece);

  // That many bytes will have to be copied soon: helpers that sleep get up.
  void Expect(uint64_t bytes);

 private:
  struct Shared;
  static void Help(const std::shared_ptr<Shared>& shared);
  int Wanted();

  const std::shared_ptr<Shared> shared_;
};

}  // namespace sluice::client
