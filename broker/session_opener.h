// SPDX-License-Identifier: Apache-2.0
//
// The broker's two answers, Welcome and SessionOpened, which a client's connection and a gateway
// get alike: asks the policy, starts the worker, fills the message, sends it with its descriptor.
//
// Owner: the Broker. Loop thread only. Takes only what its callers have checked.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "broker/children/workers.h"
#include "broker/config/config.h"
#include "broker/config/policy.h"
#include "broker/os/thread_checker.h"
#include "broker/probe.h"
#include "broker/session_starts.h"

namespace sluice::broker {

class SessionOpener {
 public:
  SessionOpener(Policy* policy, Workers* workers, const Probe* probe);

  void Configure(const Config& config) {
    limits_ = config.limits;
    shares_resources_ = config.resources.enabled;
  }

  // From now on every session is refused.
  void StartDraining() { draining_ = true; }
  bool draining() const { return draining_; }

  // True once there is a snapshot to send.
  bool ready() const { return snapshot_number() != 0; }
  // Changes with each probe that has ended; 0: none has.
  int snapshot_number() const { return probe_->results(); }

  // An error means that the peer cannot be reached: its connection is to be closed.
  absl::Status SendWelcome(int socket, const std::string& features, const Account& account) const;
  // At once, or when it is the account's turn: the socket must stay open until Forget.
  absl::Status SendSession(int socket, uint64_t request_id, const SessionRequest& request);
  // The request's owner is gone.
  void Forget(uint64_t owner) { starts_.Forget(owner); }
  void WorkerStarted(uint64_t session) { starts_.Done(session); }

  static absl::Status SendWelcomeRefusal(int socket, const Refusal& refusal);
  static absl::Status SendSessionRefusal(int socket, uint64_t request_id, const Refusal& refusal);

 private:
  // Returns the status of telling the peer. `*session_id`: the session that was started; 0: none
  // was.
  absl::Status Open(int socket, uint64_t request_id, const SessionRequest& request,
                    uint64_t* session_id);

  os::ThreadChecker thread_;
  Policy* const policy_;
  Workers* const workers_;
  const Probe* const probe_;
  LimitsConfig limits_;
  bool shares_resources_ = false;
  bool draining_ = false;
  SessionStarts starts_;
  RateLimiter log_limiter_{20, 2};
};

// The names that both this broker and the peer's comma-separated list have.
std::string CommonFeatures(const std::string& peer_features);

}  // namespace sluice::broker
