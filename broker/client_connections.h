// SPDX-License-Identifier: Apache-2.0
//
// Local clients' connections: Hello -> decision -> Welcome, then OpenSession -> SessionOpened as
// often as the policy allows, and OpenResources -> ResourcesOpened once. They come by doors: the
// default socket, and one for each listener. Their identity comes from the door and the kernel.
// Anything malformed closes the connection with one log line; nothing that a client sends reaches
// further than this file and its log lines.
//
//   accept --> [new] --Hello--> [waiting for the snapshot] --> [welcome] --OpenSession--> [welcome]
//                |                                                |
//                +-- refused, malformed, silent for 5 s, gone: closed; its sessions end
//                                                                    within the grace
//
// Owner: the Broker. Loop thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "broker/children/workers.h"
#include "broker/config/policy.h"
#include "broker/event_loop.h"
#include "broker/os/peer_identity.h"
#include "broker/os/scoped_handle.h"
#include "broker/os/thread_checker.h"
#include "broker/resources/hub.h"
#include "broker/session_opener.h"
#include "broker/slots.h"
#include "broker/tenants/tenant_finder.h"
#include "proto/broker_messages.h"

namespace sluice::broker {

class ClientConnections {
 public:
  ClientConnections(EventLoop* loop, Policy* policy, Workers* workers, SessionOpener* opener,
                    ResourceHub* resources, std::function<bool(pid_t)> is_helper)
      : loop_(loop),
        policy_(policy),
        workers_(workers),
        opener_(opener),
        resources_(resources),
        is_helper_(std::move(is_helper)) {}
  ~ClientConnections();

  using DoorId = uint64_t;
  // `listener` is null for the default socket.
  DoorId Listen(os::UniqueFd socket, std::shared_ptr<const ListenerConfig> listener = nullptr);
  // From now on the door has this configuration, with its tenant's limits.
  void Update(DoorId door, std::shared_ptr<const ListenerConfig> listener);
  // Accepts no more connections. Those that came by it open no new sessions; with `end_connections`
  // they are closed, and their sessions end within the grace.
  void Close(DoorId door, bool end_connections);
  size_t ConnectionsBy(DoorId door) const;

  // Closes the listening sockets and every connection.
  void Stop();

  // Answers the clients that came before the snapshot was there.
  void SnapshotReady();

  size_t connection_count() const { return connections_.size(); }
  std::vector<Tenant> Tenants() const;  // Of the connections.

 private:
  enum class State { kNew, kWaiting, kWelcome };

  struct Door {
    os::UniqueFd socket;
    std::shared_ptr<const ListenerConfig> listener;
    EventLoop::WatchId watch = 0;
    EventLoop::TimerId pause_timer = 0;
  };

  struct Connection {
    uint64_t id = 0;
    DoorId door = 0;
    os::UniqueFd socket;
    std::shared_ptr<void> slot;  // Of the policy's, or of refused_.
    os::PeerIdentity peer;
    Tenant tenant;
    std::shared_ptr<const void> container;  // Keeps its name (TenantFinder::Found).
    State state = State::kNew;
    std::optional<Refusal> refusal;  // Told after its Hello; such a connection is not counted.
    std::string features;
    std::string process_name;
    EventLoop::WatchId socket_watch = 0;
    EventLoop::WatchId death_watch = 0;
    EventLoop::TimerId hello_timer = 0;
  };

  void OnAcceptable(DoorId id);
  void PauseAccepting(DoorId id);
  void Adopt(DoorId door, os::UniqueFd socket);
  std::optional<Refusal> Judge(const Door& door, Connection* connection);
  std::optional<Refusal> RefuseOwnProcess(const os::PeerIdentity& peer) const;
  void WatchSocket(Connection* connection);
  void OnReadable(uint64_t id);
  // False: the connection is to be closed, `*why` says why.
  bool HandleMessage(Connection* connection, const void* packet, size_t size, std::string* why);
  bool HandleOpenSession(Connection* connection, const wire::OpenSession& open, std::string* why);
  bool HandleAskQuotas(Connection* connection, std::string* why);
  bool HandleOpenResources(Connection* connection, std::string* why);
  bool HandleHello(Connection* connection, const wire::Hello& hello, std::string* why);
  bool SendWelcomeTo(Connection* connection, std::string* why);
  void CloseConnection(uint64_t id, const std::string& violation);

  os::ThreadChecker thread_;
  EventLoop* const loop_;
  Policy* const policy_;
  Workers* const workers_;
  SessionOpener* const opener_;
  ResourceHub* const resources_;
  const std::function<bool(pid_t)> is_helper_;  // Gateways, allocator, probe.

  TenantFinder finder_;
  std::map<DoorId, Door> doors_;
  uint64_t next_id_ = 1;  // Of connections, and of doors.
  Slots<uid_t> refused_;
  std::map<uint64_t, std::unique_ptr<Connection>> connections_;
  RateLimiter log_limiter_{50, 10};
};

}  // namespace sluice::broker
