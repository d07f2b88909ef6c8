// SPDX-License-Identifier: Apache-2.0
// Lets our threads end their work before the process's exit takes the graphics driver down. A
// program may crash in the driver's exit handler (sharing/gl/gl_quirks.h) if memory of the
// worker is still imported then, and one of ours may be in a call. At exit() what is to be done
// last is done, then nothing more is let in, and the exit waits for those inside, but not long. On
// Windows, where the system ends all threads before a library hears of the exit, nobody is waited
// for then, and nothing is let in.
// Thread-safe.
#pragma once

#include <functional>
#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace sluice::client::sharing {

class ExitGate {
 public:
  // The process's. Never destroyed.
  static ExitGate& OfProcess();
  // Has exit() close it, before what has been loaded or registered by now is taken down. To be
  // called when the driver has made what it makes.
  static void CloseAtExit();

  // False once it is closed. True: Leave must follow.
  bool Enter();
  void Leave();
  bool closed();
  // The exit has gone on without some that are inside: they must not touch the driver again.
  bool given_up();

  // Called by Close before it closes, on its thread: to enter once more. Until RemoveLast.
  void AddLast(const void* key, std::function<void()> last);
  void RemoveLast(const void* key);

  // Waits until all have left; false if `timeout` is over first.
  bool Close(absl::Duration timeout);

 private:
  absl::Mutex mu_;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  bool given_up_ ABSL_GUARDED_BY(mu_) = false;
  int inside_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<const void*, std::function<void()>> last_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sluice::client::sharing
