// SPDX-License-Identifier: Apache-2.0
// Work that waits in the driver (builds, compilations, links) beside the session thread, which
// never does. One thread: drivers serialise their compilers anyway, and the order of two builds of
// one program is kept. Thread-safe.
//
// No driver can be told to stop compiling, and a thread that hangs in a compiler may hold locks
// that any other call wants. A build that takes longer than the session's limit is therefore the
// end of the session. A second thread, the watch, answers it in the driver's stead, and on_overrun
// ends the worker, which belongs to this session alone.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace sluice::worker {

class Builds {
 public:
  // More builds than this never wait for their turn.
  static constexpr size_t kMaxWaiting = 4096;

  struct Work {
    // Waits in the driver, and returns what tells the client how it went.
    std::function<std::function<void()>()> run;
    // Tells the client that the work was given up, and why. On the watch.
    std::function<void(const std::string& why)> give_up;
  };

  // Each may take so long; 0: for ever.
  explicit Builds(uint64_t limit_ms) : limit_ms_(limit_ms) {}
  // Ends the threads after the work they are at. A worker's never are: the worker ends by _exit.
  ~Builds();

  // Called once, on the watch, after give_up. Set before anything is posted.
  void set_on_overrun(std::function<void(const std::string& why)> on_overrun) {
    on_overrun_ = std::move(on_overrun);
  }

  // Called on the build thread when the client has been told of a build. Set before anything is
  // posted.
  void set_after_each(std::function<void()> after_each) { after_each_ = std::move(after_each); }

  // Nothing more is begun: for a session that ends before the process (a pool's).
  void Stop();
  // No work is under way any more.
  bool stopped() {
    absl::MutexLock lock(&mu_);
    return stop_ && !running_;
  }

  // Runs `work` on the build thread, after everything that was posted before. False: too many wait.
  bool Post(Work work);

 private:
  void Loop();
  void Watch();

  const uint64_t limit_ms_;
  std::function<void(const std::string&)> on_overrun_;
  std::function<void()> after_each_;

  absl::Mutex mu_;
  absl::CondVar changed_;  // Anything below.
  std::deque<Work> waiting_ ABSL_GUARDED_BY(mu_);
  // Of the work that runs; infinite while there is none, or no limit.
  absl::Time deadline_ ABSL_GUARDED_BY(mu_) = absl::InfiniteFuture();
  std::function<void(const std::string&)> give_up_ ABSL_GUARDED_BY(mu_);
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  bool running_ ABSL_GUARDED_BY(mu_) = false;   // Some work is.
  bool given_up_ ABSL_GUARDED_BY(mu_) = false;  // Nothing more is told to the client.
  std::thread thread_ ABSL_GUARDED_BY(mu_);
  std::thread watch_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sluice::worker
