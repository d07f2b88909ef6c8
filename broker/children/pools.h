// SPDX-License-Identifier: Apache-2.0
//
// Workers that serve several sessions: of one isolation domain, one account and the same limits.
// Kernels of one process run beside each other on a GPU, those of two do not. A session is put into
// a pool with one message that carries its handle channel and its control socket
// (proto/pool_messages.h); from then on broker and worker speak of it as of any other.
//
//   Join -> [a pool of that key with room, or a new one] --- its last Leave, idle_seconds ---> ended
//                                     |
//                                     +--- its process ends: on_ended, with the sessions it had
//
// Owner: Workers. Loop thread only. A pool's process is as hostile as its sessions, which are of one
// domain: nothing relies on what it says.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "broker/children/child_output.h"
#include "broker/children/child_watch.h"
#include "broker/config/sharing_sections.h"
#include "broker/event_loop.h"
#include "broker/os/process.h"
#include "broker/os/scoped_handle.h"
#include "broker/os/types.h"
#include "proto/broker_messages.h"

namespace sluice::broker {

class Pools {
 public:
  // Starts a worker with --pool: its control socket, and where its output goes.
  using Launch =
      std::function<absl::StatusOr<os::ChildProcess>(uint64_t pool, int control, int output)>;
  // The process has ended and is reaped.
  using OnEnded = std::function<void(uint64_t pool, const os::ExitStatus& status,
                                     const std::set<uint64_t>& sessions)>;

  Pools(EventLoop* loop, OnEnded on_ended) : loop_(loop), on_ended_(std::move(on_ended)) {}
  ~Pools();

  void Configure(const PoolConfig& config) { config_ = config; }

  struct Place {
    uint64_t pool = 0;
    pid_t pid = -1;
  };
  // `key`: all that sessions of one pool must have in common. The descriptors stay the caller's.
  // `new_id`: of a pool that is started for it.
  absl::StatusOr<Place> Join(const std::string& key, uint64_t session, uint64_t new_id, int channel,
                             int control, const Launch& launch);
  // The session has ended.
  void Leave(uint64_t pool, uint64_t session);
  // With all its sessions.
  void Kill(uint64_t pool);
  // Before the broker's end: kills what is left.
  void Stop();

  bool Includes(pid_t pid) const;

 private:
  struct Pool {
    explicit Pool(EventLoop* loop) : exit_watch(loop), output(loop, "worker") {}
    uint64_t id = 0;
    std::string key;
    os::ChildProcess worker;
    ChildWatch exit_watch;
    ChildOutput output;
    os::UniqueFd control;
    EventLoop::WatchId control_watch = 0;
    EventLoop::TimerId idle_timer = 0;
    std::set<uint64_t> sessions;
    bool closed = false;  // Takes no more of them.
    RateLimiter notices{10, 1};
  };

  absl::StatusOr<Pool*> Start(const std::string& key, uint64_t id, const Launch& launch);
  bool Send(Pool* pool, uint64_t session, int channel, int control);
  void OnControl(uint64_t id);
  void OnExit(uint64_t id, const os::ExitStatus& status);
  void Close(Pool* pool);
  void ArmIdleTimer(Pool* pool);

  EventLoop* const loop_;
  const OnEnded on_ended_;
  PoolConfig config_;
  std::map<uint64_t, std::unique_ptr<Pool>> pools_;
};

}  // namespace sluice::broker
