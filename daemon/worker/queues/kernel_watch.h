// SPDX-License-Identifier: Apache-2.0
// Ends a session whose command runs longer on the device than the daemon allows (kernel_time_ms): an
// endless kernel, which nothing but its process' end stops. A thread looks at what the driver says of
// the oldest commands, eight times in the limit. With a limit the driver makes an event for each
// command (enqueuer.h), so that none runs unseen.
//
// The time is the wall's, from the first look that finds the command running: what the device does
// for others meanwhile counts too. Where the driver never says that a command runs, one counts from
// when it waits for nothing but the device, and since the last end in its queue.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace sluice::worker {

class Completions;

class KernelWatch {
 public:
  // `on_overrun` is told once, with a sentence for people, on a thread of this. All outlive it.
  KernelWatch(Completions* completions, uint64_t limit_ms,
              std::function<void(const std::string& why)> on_overrun);
  ~KernelWatch();

 private:
  void Loop();

  Completions* const completions_;
  const uint64_t limit_ms_;
  const std::function<void(const std::string&)> on_overrun_;
  absl::Mutex mu_;
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace sluice::worker
