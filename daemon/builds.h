// SPDX-License-Identifier: Apache-2.0
// Work that waits in the driver (builds, links, kernel creation behind a build) beside the session
// thread, which never does. One thread: drivers serialise their compilers anyway, and the order of
// two builds of one program is kept. Thread-safe.
#pragma once

#include <deque>
#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace sluice {

class Builds {
 public:
  // Ends the thread after the work it is at. A worker's never is: the worker ends by _exit.
  ~Builds();

  // Runs `work` on the build thread, after everything that was posted before.
  void Post(std::function<void()> work);

 private:
  void Loop();

  absl::Mutex mu_;
  absl::CondVar changed_;  // work_ or stop_.
  std::deque<std::function<void()>> work_ ABSL_GUARDED_BY(mu_);
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sluice
