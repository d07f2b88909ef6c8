// SPDX-License-Identifier: Apache-2.0
//
// The platform snapshot: what every client is told about devices. A short-lived worker (--probe)
// loads the drivers and writes it into a memfd; the broker never looks inside. It copies the bytes
// into a sealed memfd of its own, so that neither the probe nor a client can change what the next
// client sees.
//
// Owner: the Broker. Loop thread only, but for Copy. The probe runs vendors' code and is trusted
// as a worker is: its time, its size and its exit status are checked.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "broker/children/child_output.h"
#include "broker/children/child_watch.h"
#include "broker/children/worker_launcher.h"
#include "broker/event_loop.h"
#include "broker/os/process.h"
#include "broker/os/scoped_handle.h"
#include "broker/os/thread_checker.h"

namespace sluice::broker {

inline constexpr size_t kMaxSnapshotBytes = size_t{4} << 20;

class Probe {
 public:
  explicit Probe(EventLoop* loop) : loop_(loop), said_(loop, "worker"), watch_(loop) {}
  ~Probe();

  // Starts a probe; `on_done` is called when there is a result, good or bad. A bad one leaves an
  // older snapshot in place; one that finds no allowed device does not. Does nothing if a probe
  // runs already. Devices report at most `memory_limit` bytes of memory, which a session may have
  // (0: no limit).
  void Start(const WorkerLauncher& launcher, uint64_t memory_limit, int64_t timeout_ms,
             std::function<void()> on_done);

  // Ends a running probe; `on_done` is not called.
  void Cancel();
  bool running() const { return child_.valid(); }
  bool Is(pid_t pid) const { return child_.valid() && child_.pid() == pid; }

  // How many results there were; 0: none yet.
  int results() const { return results_; }
  int fd() const { return sealed_.get(); }
  uint64_t size() const { return size_; }
  const std::string& problem() const { return problem_; }  // "" if the last probe found devices.
  bool changed() const { return changed_; }  // The last probe's result differs from the one before.

  struct Summary {
    std::string bytes;
    std::string problem;
  };
  Summary Copy() const ABSL_LOCKS_EXCLUDED(mutex_);  // Thread-safe.

 private:
  void OnExit(const os::ExitStatus& status);
  void Finish(absl::StatusOr<std::string> snapshot);
  absl::StatusOr<std::string> Collect(const os::ExitStatus& status) const;

  os::ThreadChecker thread_;
  EventLoop* const loop_;
  os::ChildProcess child_;
  ChildOutput said_;
  os::UniqueFd output_;
  ChildWatch watch_;
  EventLoop::TimerId timer_ = 0;
  int64_t timeout_ms_ = 0;
  bool timed_out_ = false;
  std::function<void()> on_done_;

  int results_ = 0;
  os::UniqueFd sealed_;
  uint64_t size_ = 0;
  std::string problem_;
  bool changed_ = false;

  mutable absl::Mutex mutex_;
  Summary summary_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace sluice::broker
