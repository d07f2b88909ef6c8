// SPDX-License-Identifier: Apache-2.0
//
// One network entry of the configuration: the gateway process that serves it, and the broker's side
// of the socket to that process. The gateway ends TLS and authenticates; it is unprivileged, so the
// broker opens certificate, key and tokens and hands it the descriptors. It is started again when
// it dies.
//
//   gateway fd 3: GatewayHello -> Welcome [snapshot]; GatewayOpen -> SessionOpened [handle channel]
//                 CloseSession; <- GatewayFiles [certificate, key, ...]
//
// Owner: the Broker. Loop thread only. A gateway faces the network and is not trusted with more
// than opening sessions, whose number the policy bounds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "broker/children/child_output.h"
#include "broker/children/child_watch.h"
#include "broker/children/workers.h"
#include "broker/config/config.h"
#include "broker/event_loop.h"
#include "broker/os/process.h"
#include "broker/os/scoped_handle.h"
#include "broker/os/thread_checker.h"
#include "broker/session_opener.h"

namespace sluice::broker {

enum class NetworkCheck {
  kFiles,      // Certificate, key, authorities, tokens.
  kAddresses,  // Those, and whether this machine has the addresses.
  kPorts,      // All that, and whether the ports can be had now.
};

// Checks the parts of an entry that only a gateway can judge. Starts one for the moment, as the
// user that it will run as, if that matters. An error names place and key. kUnavailable: nothing is
// wrong but an address that is not there yet, or a name server that does not answer.
absl::Status CheckNetwork(const NetworkConfig& network, NetworkCheck check,
                          const std::optional<os::UserIdentity>& user = std::nullopt);

class GatewayLink {
 public:
  // `sandbox`: arguments for it (SandboxArguments). `owner` marks its sessions; distinct from every
  // local connection's id.
  GatewayLink(EventLoop* loop, Workers* workers, SessionOpener* opener, NetworkConfig network,
              std::optional<os::UserIdentity> user, std::vector<std::string> sandbox,
              uint64_t owner)
      : loop_(loop),
        workers_(workers),
        opener_(opener),
        network_(std::move(network)),
        user_(std::move(user)),
        sandbox_(std::move(sandbox)),
        owner_(owner),
        output_(loop, "gateway"),
        exit_watch_(loop) {}
  ~GatewayLink();

  void Start();  // Also after a failure: tries again, ever less often.

  // Hands it the entry's files anew, as they are now.
  void ReloadFiles();

  // A snapshot has come: welcomes a gateway that waits for it, or tells it of the new one.
  void SnapshotReady();

  const NetworkConfig& network() const { return network_; }
  bool Is(pid_t pid) const { return process_.valid() && process_.pid() == pid; }

 private:
  absl::Status Spawn();
  void OnExit(const os::ExitStatus& status);
  void OnReadable();
  bool HandleMessage(const void* packet, size_t size);
  absl::Status SendSnapshot();
  void Kill(const std::string& why);
  void ScheduleRestart();

  os::ThreadChecker thread_;
  EventLoop* const loop_;
  Workers* const workers_;
  SessionOpener* const opener_;
  const NetworkConfig network_;
  const std::optional<os::UserIdentity> user_;
  const std::vector<std::string> sandbox_;  // Arguments.
  const uint64_t owner_;

  os::ChildProcess process_;
  ChildOutput output_;
  os::UniqueFd control_;
  ChildWatch exit_watch_;
  EventLoop::WatchId control_watch_ = 0;
  EventLoop::TimerId restart_timer_ = 0;
  int64_t started_ms_ = 0;
  int64_t backoff_ms_ = 0;
  bool greeted_ = false;   // By the gateway that runs.
  int told_snapshot_ = 0;  // To that one, by its number.
  std::string features_;
};

}  // namespace sluice::broker
