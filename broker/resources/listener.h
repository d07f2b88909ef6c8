// SPDX-License-Identifier: Apache-2.0
//
// How calls of resource clients get to the gRPC server, and which connection a call came on. Linux:
// connected sockets that are given to the server, which has no port. Windows, where gRPC takes no
// socket of ours: a port of loopback, and a token that the connection's pipe has given
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

  // 0: nobody's. Good for a call that has not been finished.
  virtual uint64_t ConnectionOf(const grpc::CallbackServerContext& context) = 0;

  // Shows the caller, who is somebody, that its answer comes from here. Before the answer, once.
  virtual void Prove(grpc::CallbackServerContext* context) = 0;
};

}  // namespace sluice::broker
