// SPDX-License-Identifier: Apache-2.0
//
// How the broker stops: no new sessions; when the last has ended, the loop quits. Sessions that
// are left when the drain timeout is over are ended; a second stop signal ends them at once.
//
// Owner: the Broker. Loop thread only.
#pragma once

#include <cstdint>

#include "broker/children/workers.h"
#include "broker/config/config.h"
#include "broker/event_loop.h"
#include "broker/resources/hub.h"
#include "broker/session_opener.h"

namespace sluice::broker {

class Shutdown {
 public:
  Shutdown(EventLoop* loop, Workers* workers, SessionOpener* opener, ResourceHub* resources)
      : loop_(loop), workers_(workers), opener_(opener), resources_(resources) {}

  void Configure(const Config& config);

  void OnStopSignal();
  void Drain(int64_t timeout_ms);  // 0 = no limit.
  void OnSessionEnded();

 private:
  void EndWorkers(const char* reason, int64_t grace_ms);

  EventLoop* const loop_;
  Workers* const workers_;
  SessionOpener* const opener_;
  ResourceHub* const resources_;
  int64_t drain_timeout_ms_ = 0;
  int64_t kill_grace_ms_ = 0;
  EventLoop::TimerId drain_timer_ = 0;
  EventLoop::TimerId give_up_timer_ = 0;
  bool signalled_ = false;
};

}  // namespace sluice::broker
