// SPDX-License-Identifier: Apache-2.0
// Captures the output of kernels' printf. A driver prints to the process's stdout, which in a
// worker is a pipe to ourselves. Its text goes to the client as Printed replies, and is drained
// before the completion of the command that printed it is sent. Thread-safe.
#pragma once

#include <atomic>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "broker/os/scoped_handle.h"

namespace sluice::worker {

class Replies;

class PrintfCapture {
 public:
  // Takes over stdout. `replies` must outlive the capture.
  absl::Status Start(Replies* replies);

  // A program of the session may print: from now on completions drain first.
  // Nothing where it has not been started: in a pool (pool/printing_turns.h).
  void Expect() { expected_.store(read_end_.valid(), std::memory_order_relaxed); }

  // Sends on what has been printed so far; cheap if nothing can have been.
  void Drain() {
    if (expected_.load(std::memory_order_relaxed)) DrainNow();
  }

 private:
  void DrainNow();

  Replies* replies_ = nullptr;
  os::UniqueFd read_end_;
  std::atomic<bool> expected_ = false;
  absl::Mutex mu_;  // Keeps the order of the text.
};

}  // namespace sluice::worker
