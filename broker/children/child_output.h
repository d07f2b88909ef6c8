// SPDX-License-Identifier: Apache-2.0
//
// Logs a child's stdout and stderr as lines of the broker's own: quoted, bounded, with their
// session or gateway. A child has no descriptor of the log itself: taken over by a tenant's kernel,
// a driver or the network, it could forge lines there, or cut the file. Lines as base/log.h writes
// them keep their level:
//
//   12:00:00Z warning worker msg="a build took too long"   ->   warning worker msg=output
//                                      session=00ab... text="msg=\"a build took too long\""
//
// A child that writes too much is read slowly, and its lines are counted instead of logged; it
// never waits for long. Owner: whoever owns the process. Loop thread only. Trusts nothing that it
// reads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "broker/base/log.h"
#include "broker/config/policy.h"
#include "broker/event_loop.h"
#include "broker/os/scoped_handle.h"
#include "broker/os/thread_checker.h"

namespace sluice::broker {

class ChildOutput {
 public:
  // `component`: as it calls itself in its lines.
  ChildOutput(EventLoop* loop, std::string component)
      : loop_(loop), component_(std::move(component)) {}
  ~ChildOutput() { Finish(); }
  ChildOutput(const ChildOutput&) = delete;
  ChildOutput& operator=(const ChildOutput&) = delete;

  // For a child that is about to be started: returns its end, for SpawnOptions::output. Each line
  // is logged with `whose`.
  absl::StatusOr<os::UniqueFd> Open(LogField whose);

  // For an owner that waits for the child without the loop: logs what has been written.
  void Take();
  // After the child's end: logs the rest. Its offspring may write on, to nobody.
  void Finish();

 private:
  void Watch();
  void OnReadable();
  void TakeBytes(std::string_view bytes);
  void EndLine();
  void LogLine(std::string_view line);
  void LogLeftOut();

  os::ThreadChecker thread_;
  EventLoop* const loop_;
  const std::string component_;
  std::optional<LogField> whose_;
  os::UniqueFd pipe_;
  EventLoop::WatchId watch_ = 0;
  EventLoop::TimerId pause_ = 0;
  std::string line_;  // The line's bytes so far, at most kMaxLineBytes.
  bool cut_ = false;  // It was longer.
  RateLimiter lines_{200, 20};
  uint64_t left_out_ = 0;
};

}  // namespace sluice::broker
