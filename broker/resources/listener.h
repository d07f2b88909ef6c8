// SPDX-License-Identifier: Apache-2.0
//
// Takes resource clients' calls to the gRPC server, and knows the connection that a call came on.
// On Linux the server has no port, and is given connected sockets. On Windows gRPC takes no socket
// of ours: it has a port of loopback, and calls show a token that the client got by its pipe
// (loopback_tokens.h).
//
// Owner: the ResourceServer. Made and destroyed, Open and Close on the loop thread; ConnectionOf
// and Prove on gRPC's threads.
#pragma once

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/server_context.h>

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "broker/resources/streams.h"

namespace sluice::broker {

class ResourceListener : public ResourceStreams {
 public:
  static std::unique_ptr<ResourceListener> Create();

  // Builds and starts the server. Once.
  virtual absl::StatusOr<std::unique_ptr<grpc::Server>> Start(grpc::ServerBuilder* builder) = 0;

  // The connection that a call came on; 0: none. Only before the call is finished.
  virtual uint64_t ConnectionOf(const grpc::CallbackServerContext& context) = 0;

  // Proves to the caller, whose connection is known, that the answer comes from here. Before the
  // answer, once.
  virtual void Prove(grpc::CallbackServerContext* context) = 0;
};

}  // namespace sluice::broker
