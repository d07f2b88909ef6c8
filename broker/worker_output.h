// SPDX-License-Identifier: Apache-2.0
//
// What a worker writes to its stdout and stderr, as lines of the broker's own log: quoted, bounded,
// with the session's id. A worker has no descriptor of the log itself, since a tenant's kernel in
// it could forge lines there, or cut the file. Lines as base/log.h writes them keep their level:
//
//   12:00:00Z warning worker msg="a build took too long"   ->   warning worker msg=output
//                                      session=00ab... text="msg=\"a build took too long\""
//
// A worker that writes too much is read slowly and its lines are counted instead of told; it never
// waits for long. Owner: a session of Workers. Loop thread only. Trusts nothing that it reads.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "broker/event_loop.h"
#include "broker/os/scoped_handle.h"
#include "broker/policy.h"

namespace sluice {

class WorkerOutput {
 public:
  explicit WorkerOutput(EventLoop* loop) : loop_(loop) {}
  ~WorkerOutput() { Stop(); }
  WorkerOutput(const WorkerOutput&) = delete;
  WorkerOutput& operator=(const WorkerOutput&) = delete;

  // The worker's end. kUnimplemented: this system has no such pipe, and its workers write to the
  // broker's stderr.
  absl::StatusOr<UniqueFd> Open(const std::string& session);

  // After the worker's end: tells what is left. Its offspring may write on, to nobody.
  void Finish();

 private:
  void Stop();
  void Watch();
  void OnReadable();
  void Take(std::string_view bytes);
  void EndLine();
  void Tell(std::string_view line);
  void TellLeftOut();

  EventLoop* const loop_;
  std::string session_;
  UniqueFd pipe_;
  EventLoop::WatchId watch_ = 0;
  EventLoop::TimerId pause_ = 0;
  std::string line_;  // What has come of it so far, at most kMaxLineBytes.
  bool cut_ = false;  // More of it has come.
  RateLimiter lines_{200, 20};
  uint64_t left_out_ = 0;
};

}  // namespace sluice
