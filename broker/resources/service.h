// SPDX-License-Identifier: Apache-2.0
//
// The gRPC face of daemon-owned resources (proto/resources.proto): turns calls into questions to
// ResourceHub on the loop thread, and its answers into replies. The ResourceListener knows the
// connection of each call (listener.h).
//
// Owner: the Broker. Start and the destructor on the loop thread; calls come on gRPC's
// threads, wait for nothing there, and touch nothing but the queue. Clients are hostile: gRPC's
// limits on message size, streams and memory are set here, the rest is checked behind.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "broker/event_loop.h"
#include "broker/resources/hub.h"

namespace sluice::broker {

class ResourceServer {
 public:
  // `loop` and `hub` are the caller's and outlive this. Must come before AdminServer::Start, which
  // adds reflection and health to every server made after it.
  static absl::StatusOr<std::unique_ptr<ResourceServer>> Start(EventLoop* loop, ResourceHub* hub);
  virtual ~ResourceServer() = default;  // Stops the hub, which ends every call.
};

}  // namespace sluice::broker
