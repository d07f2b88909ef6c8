// SPDX-License-Identifier: Apache-2.0
//
// One daemon per socket: the lock that says so, and the socket file itself. A socket that a killed
// daemon left behind is removed; one at which a daemon answers is not.
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

// Makes the clients' folder, and the others if they are named after it (base/daemon_places.h).
// Refuses a folder that others may write. They stay at the daemon's end: a container that has one
// mounted would keep the removed folder, and never see a new one.
absl::Status MakeDaemonFolders(const Config& config);

// While the places of old are served, links the default socket's place of old to its place of
// today. True if the link is there.
bool LinkOldPlaces(const Config& config);
void UnlinkOldPlaces(const Config& config);

// Removes a socket at `path` at which nobody answers. kAlreadyExists if somebody does, or if `path`
// is no socket.
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

// Makes the folder of a listener's socket, for that socket alone, if it is missing; also the one
// that all of them lie in by default. Refuses a folder in which, or above which, anybody else could
// put something, and one that has anything else in it.
absl::Status MakeListenerFolder(const std::string& socket);
// If it is empty.
void RemoveListenerFolder(const std::string& socket);

}  // namespace sluice::broker
