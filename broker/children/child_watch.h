// SPDX-License-Identifier: Apache-2.0
//
// Tells the loop's thread once when a child process has ended, reaped, with all that it started
// swept up. A child that somebody traces (a debugger) is dead before it can be reaped: then it is
// looked at again every now and then, and nobody waits for the tracer.
//
// Owner: whoever owns the process. Loop thread only, but for KillAndReap: any thread.
#pragma once

#include <functional>

#include "broker/event_loop.h"
#include "broker/os/process.h"
#include "broker/os/thread_checker.h"

namespace sluice::broker {

// Kills what is left of a child and reaps it: gone when this returns, but for one that the system
// does not let go (it waits for a device, or a debugger holds it). That one is named in the log,
// and nobody waits for it. `what`: "gateway".
void KillAndReap(os::ChildProcess* process, const char* what);

class ChildWatch {
 public:
  explicit ChildWatch(EventLoop* loop) : loop_(loop) {}
  ~ChildWatch() { Stop(); }
  ChildWatch(const ChildWatch&) = delete;
  ChildWatch& operator=(const ChildWatch&) = delete;

  // `process` is the caller's and stays where it is until `on_exit` or Stop. `on_exit` may destroy
  // this.
  void Start(os::ChildProcess* process, std::function<void(const os::ExitStatus&)> on_exit);

  // No call after this.
  void Stop();

 private:
  void OnEnded();

  os::ThreadChecker thread_;
  EventLoop* const loop_;
  os::ChildProcess* process_ = nullptr;
  std::function<void(const os::ExitStatus&)> on_exit_;
  EventLoop::WatchId watch_ = 0;
  EventLoop::TimerId retry_timer_ = 0;
};

}  // namespace sluice::broker
