// SPDX-License-Identifier: Apache-2.0
//
// Tells the loop's thread once when a child process has ended, was reaped, and all that it started
// has been killed. A child that a debugger traces is dead before it can be reaped: then this looks
// again every now and then, and does not wait for the debugger.
//
// Owner: whoever owns the process. Loop thread only, but for KillAndReap: any thread.
#pragma once

#include <functional>

#include "broker/event_loop.h"
#include "broker/os/process.h"
#include "broker/os/thread_checker.h"

namespace sluice::broker {

// Kills a child with all that it started, and reaps it before this returns. One that the system
// does not let go (it waits for a device, or a debugger holds it) is logged and left. `what`:
// "gateway".
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
