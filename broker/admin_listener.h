// SPDX-License-Identifier: Apache-2.0
//
// How operators reach the admin service. On Linux a Unix socket that only the daemon's own user can
// open (the monitor socket: a group too). On Windows, where gRPC has no such socket, a port of
// loopback. A program that may open the admin pipe gets the port and a 256-bit token through it.
// Every call must show the token while the pipe is open, and only from the TCP connection that
// showed it first (loopback_tokens.h).
//
// Owner: AdminServer. Create, Start and the destructor on the loop thread; Admit on gRPC's.
#pragma once

#include <grpcpp/server_builder.h>
#include <grpcpp/server_context.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "broker/base/daemon_places.h"
#include "broker/event_loop.h"

namespace sluice::broker {

enum class AdminRole { kAdministrator, kMonitor };  // May do all; may look.

struct AdminSocket {
  AdminRole role = AdminRole::kAdministrator;
  std::string name;
  std::string group = {};       // May open it, too; "" = kMonitorGroup, if there is one. Monitor.
  std::string admin_name = {};  // The admin socket's, for messages. Monitor.
};

class AdminListener {
 public:
  // `loop` is the caller's and outlives this.
  static absl::StatusOr<std::unique_ptr<AdminListener>> Create(EventLoop* loop,
                                                               const AdminSocket& socket);
  virtual ~AdminListener() = default;  // After the server has been shut down.

  // Builds and starts the server with its port.
  virtual absl::StatusOr<std::unique_ptr<grpc::Server>> Start(grpc::ServerBuilder* builder) = 0;

  // OK if the caller may ask anything at all. Proves to it that the answer comes from here.
  virtual grpc::Status Admit(grpc::ServerContext* context) = 0;
};

}  // namespace sluice::broker
