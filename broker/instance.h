// SPDX-License-Identifier: Apache-2.0
//
// One daemon per socket: the lock that says so, and the socket file itself. A socket that a killed
// daemon left behind is removed; one that somebody answers on is not.
//
// Owner: the Broker. Main thread, before and after the loop runs.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/config/config.h"
#include "broker/os/scoped_handle.h"

namespace sluice::broker {

// Held for the process's life. The kernel drops it when the process dies, however it dies.
class InstanceLock {
 public:
  // kAlreadyExists, with the other daemon's pid where it is known, if another one holds it.
  static absl::StatusOr<InstanceLock> Take(const std::string& socket_path);

  InstanceLock(InstanceLock&&) = default;
  InstanceLock& operator=(InstanceLock&&) = default;
  ~InstanceLock();  // Removes the file.

 private:
  InstanceLock(std::string path, os::UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  std::string path_;
  os::UniqueFd fd_;
};

// Makes the directory of `path` if it is missing, and of X/clients X as well: 0755 for root's
// daemon, 0700 for a user's own.
absl::Status MakeParentDirectory(const std::string& path);

// Makes the clients' folder and, where the others are named after it (base/daemon_places.h), those;
// refuses one that is not the daemon's alone to write. They stay at the daemon's end: a container
// that has one mounted would keep the folder that is gone.
absl::Status MakeDaemonFolders(const Config& config);

// While the places of old are served: a link from where the default socket was to where it is. True
// if it is there.
bool LinkOldPlaces(const Config& config);
void UnlinkOldPlaces(const Config& config);

// Removes a socket at `path` that nobody answers on. kAlreadyExists if somebody does, or if what is
// there is no socket.
absl::Status RemoveStaleSocket(const std::string& path);

// Of a listener that is gone.
void RemoveSocketFile(const std::string& path);

// A listening socket, mode and group included.
struct ListenerPlace {
  std::string path;
  mode_t mode = 0;
  std::string group;  // "" = leave.
};
absl::StatusOr<os::UniqueFd> OpenListener(const ListenerPlace& place);

// The folder of a listener's socket, for that socket alone: made if it is missing, and the one that
// all of them lie in by default. Refused if anybody else could put something there, there or in a
// folder above, or if something else is in it.
absl::Status MakeListenerFolder(const std::string& socket);
// If it is empty.
void RemoveListenerFolder(const std::string& socket);

}  // namespace sluice::broker
