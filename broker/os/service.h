// SPDX-License-Identifier: Apache-2.0
//
// The daemon and its service manager: reports how far the start has come, and takes the sockets
// that the manager opened. This speaks systemd's sd_notify and LISTEN_FDS protocols itself, so that
// the privileged process links no further library. Without a service manager all of it does
// nothing. On Windows it is the service control manager, which starts the process by its own
// protocol. Call from the main thread, before other threads are started.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "broker/os/scoped_handle.h"

namespace sluice::os {

// Runs `serve` and returns its result. On Windows the service control manager says when, unless
// `console`: then a person has started us.
int RunUnderServiceManager(bool console, const std::function<int()>& serve);

// The configuration that is read if it exists and no other is named.
std::string DefaultConfigFile();

// OK if nobody can have written the configuration who could not have run the daemon anyway; else
// the message says who could, and what to do. Windows only: there any user may make folders where
// services keep their files.
absl::Status CheckConfigOwner(const std::string& file);

// How a person has a running daemon stop or read its file again, for --help.
const char* ServiceControlHelp();

// True if stderr is systemd's journal, which takes a line's priority from "<N>" before it.
bool StderrIsJournal();

// Sends lines such as "READY=1\nSTATUS=serving". False if there is nobody to tell.
bool NotifyService(const std::string& state);

// The service manager's log, for a service that has no stderr: Windows' event log. Nothing
// elsewhere. Thread-safe.
enum class ServiceEvent { kInfo, kWarning, kError };
void LogServiceEvent(ServiceEvent kind, const std::string& line);

// A socket opened by the service manager, with the name its unit gives it (FileDescriptorName=).
struct InheritedSocket {
  std::string name;
  std::string address;  // Its path; "" if it has none.
  UniqueFd fd;
};

// Takes the inherited sockets, each marked close-on-exec, and removes the variables that announced
// them, so that no child takes them for its own.
std::vector<InheritedSocket> TakeInheritedSockets();

}  // namespace sluice::os
