// SPDX-License-Identifier: Apache-2.0
//
// A sluiced for one command: its own socket in a temporary directory, ready when Start returns,
// gone with all it made when the object is. Should sluicectl be killed, the kernel tells the daemon
// to stop. Main thread only (the death signal is bound to it).
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/os/process.h"
#include "broker/os/scoped_handle.h"

namespace sluice::ctl {

class PrivateDaemon {
 public:
  struct Options {
    std::string directory;    // For socket and log.
    std::string config_file;  // "" = built-in defaults.
    int hold = -1;            // Kept open by the daemon as long as it lives.
    bool verbose = false;     // Its log to our stderr, not to a file.
    int start_timeout_ms = 60'000;
  };

  // `signals` is a signalfd: a signal there ends the wait with kCancelled.
  static absl::StatusOr<std::unique_ptr<PrivateDaemon>> Start(const Options& options, int signals);
  ~PrivateDaemon();

  std::string endpoint() const { return "unix:" + socket_path_; }
  // Why it has no devices; empty if it has.
  const std::string& problem() const { return problem_; }

 private:
  PrivateDaemon() = default;
  absl::Status WaitUntilReady(int notify_socket, int signals, int timeout_ms);
  absl::Status Failed(const std::string& what);

  std::string socket_path_;
  std::string log_path_;
  std::string problem_;
  os::ChildProcess process_;
};

}  // namespace sluice::ctl
