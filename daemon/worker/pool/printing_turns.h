// SPDX-License-Identifier: Apache-2.0
// Decides which session's kernels may print. A process has one stdout: what drivers write there
// says nothing of who printed it. So of the kernels that may print only those of one session of a
// pool run at a time, and before another's turn the text is drained to whom it belongs. Kernels
// that cannot print run beside them.
//
// A session that asks waits only for commands that the device has been given and that wait for
// nothing else: a kernel asks when all that it waits for has ended (Enqueuer::RunPrinting). Nobody
// is asked twice before everybody who waits was once. One that never ends keeps the others' printing
// kernels, and no other kernel, until its session ends.
//
// Thread-safe. `run` is called without the lock, on the thread of Ask or of an End.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "broker/os/scoped_handle.h"

namespace sluice::worker {

class Replies;

class PrintingTurns {
 public:
  // Takes over the process's stdout.
  absl::Status Start();

  // Calls `run` when a kernel of the session may be run; then End once it has ended.
  void Ask(Replies* session, std::function<void()> run);
  void End(Replies* session);

  // Sends all that has been printed so far to whose turn it is.
  void Drain();

  // The session has no kernels any more: those of it that still wait are let run, and nothing is
  // printed to it from now on.
  void Forget(Replies* session);

 private:
  struct Waiting {
    Replies* session = nullptr;
    std::function<void()> run;
  };
  using Runs = std::vector<std::function<void()>>;

  void DrainLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The next one's turn, if nobody's kernels run.
  Runs PassOn() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  os::UniqueFd read_end_;
  absl::Mutex mu_;
  Replies* owner_ ABSL_GUARDED_BY(mu_) =
      nullptr;                            // Of what is printed: also after its last kernel.
  int running_ ABSL_GUARDED_BY(mu_) = 0;  // Its kernels.
  std::deque<Waiting> waiting_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sluice::worker
