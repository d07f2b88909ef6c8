// SPDX-License-Identifier: Apache-2.0
// Objects that go with the last command that used them are left to a thread of ours where that
// command ends on a thread that must not release them itself. Such are Direct3D's objects where
// replies are handled (sharing/d3d/d3d_interop.h). Whoever has waited for the command, or asks and
// is told of its end, waits for that too, and so does the thread of callbacks before each. So
// nothing is held any more when the application's call returns or its callback runs. Of the
// process. Thread-safe.
#pragma once

#include <atomic>
#include <memory>

#include "absl/time/time.h"

namespace sluice::client {

class PendingReleases {
 public:
  // Before anybody sees the command's end. Under way until the last copy is gone.
  static std::shared_ptr<void> Begin();

  // For the application's calls and callbacks, with no lock held: until what is under way has gone.
  // Not where replies are handled, nor where things are let go of. Whoever is to let go may stand
  // before a lock of the application's: what takes longer than `patience` is waited for by nobody
  // any more.
  static void Await(absl::Duration patience = absl::Seconds(2)) {
    if (under_way_.load(std::memory_order_acquire) != 0) AwaitAll(patience);
  }

 private:
  struct State;
  static State& Shared();
  static void AwaitAll(absl::Duration patience);

  // Written under the state's mutex; sequenced before the end of the command by whoever ends it.
  static std::atomic<int> under_way_;
};

}  // namespace sluice::client
