// SPDX-License-Identifier: Apache-2.0
//
// sluicectl's commands that ask a running daemon: devices over the broker's socket, which every
// user may open; the others over the admin socket (gRPC), which is the daemon's own user's. Each
// prints for a person, or JSON, and returns the exit code. Single thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace sluice::ctl {

struct CommonFlags {
  std::string endpoint;
  std::string admin_socket;
  bool json = false;
  int timeout_ms = 5000;
};

// Of the daemon's workers; nothing if it does not say, or may not be asked.
struct WorkersTold {
  std::string groups;
  std::string groups_advice;  // Empty: nothing is missing.
  std::string sandbox;        // Empty from older daemons.
};
std::optional<WorkersTold> AskAboutWorkers(const CommonFlags& flags);

int DevicesCommand(const CommonFlags& flags);
int StatusCommand(const CommonFlags& flags);
int SessionsCommand(const CommonFlags& flags);
int AccountsCommand(const CommonFlags& flags);
int ResourcesCommand(const CommonFlags& flags);
int KillCommand(const CommonFlags& flags, const std::string& session, const std::string& reason);
int DrainCommand(const CommonFlags& flags, int64_t timeout_seconds);

}  // namespace sluice::ctl
