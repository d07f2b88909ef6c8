// SPDX-License-Identifier: Apache-2.0
//
// The listeners beside the default socket (config/listener_config.h): those of the configuration,
// and those that operators make and remove while the daemon runs. Each has a folder that holds its
// socket and nothing else, and is a door of ClientConnections.
//
// A listener that an operator made ends with this daemon. One of the configuration that an operator
// removed is back with the next reload. A socket stays until its listener is removed or the daemon
// ends; its folder stays for the next daemon, as containers have it mounted.
//
// Owner: the Broker. Loop thread only.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "broker/client_connections.h"
#include "broker/config/config.h"
#include "broker/os/thread_checker.h"

namespace sluice::broker {

// A listener as operators see it.
struct ListenerInfo {
  ListenerConfig config;
  bool from_file = false;
  uint64_t connections = 0;
};

class Listeners {
 public:
  explicit Listeners(ClientConnections* connections) : connections_(connections) {}
  ~Listeners() { Stop(); }

  // Opens those of the configuration; an error closes none that is open.
  absl::Status Open(const Config& config);
  // Opens, closes and updates the listeners that have changed in the file since; logs those that
  // cannot be.
  void Reload(const Config& config);
  // Adds an operator's listener, which must fit beside the sockets of `config`, the daemon's. Fills
  // in its path.
  absl::Status Add(const Config& config, ListenerConfig* listener);
  // With `end_sessions`, its connections are closed and their sessions end. Otherwise they go on as
  // long as their programs do, but open no new ones. Also takes away the folder.
  absl::Status Remove(const std::string& tenant, bool end_sessions);
  std::vector<ListenerInfo> List() const;
  void Stop();  // Closes all; the folders stay.

 private:
  struct Entry {
    std::shared_ptr<const ListenerConfig> config;
    bool from_file = false;
    ClientConnections::DoorId door = 0;
  };

  absl::Status OpenOne(const ListenerConfig& listener, bool from_file);
  void Close(const Entry& entry, bool end_connections);
  std::vector<ListenerConfig> Configs() const;

  os::ThreadChecker thread_;
  ClientConnections* const connections_;
  std::map<std::string, Entry> entries_;  // By tenant.
};

}  // namespace sluice::broker
