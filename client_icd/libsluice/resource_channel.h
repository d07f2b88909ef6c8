// SPDX-License-Identifier: Apache-2.0
//
// The way of gRPC's bytes to the daemon, made of the first descriptor of ResourcesOpened. On Linux
// that is gRPC's socket, on Windows a pipe, which says at which port of loopback the service is and
// what every call must show there. linux/ and windows/ implement it.
//
// Owned by a ResourceConnection. Thread-safe once it is made.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "broker/os/scoped_handle.h"

namespace sluice::client {

struct ResourceChannel {
  std::shared_ptr<grpc::Channel> channel;
  std::string token;  // Empty where none is wanted.
  std::string proof;  // That the daemon answers; empty where none is needed.
  os::UniqueFd pipe;  // Stays open as long as the token is used.

  // Before each call.
  void Prepare(grpc::ClientContext* context) const;
  // After each, or with a stream's first metadata: `answer`, or that it is not the daemon's.
  grpc::Status Check(const grpc::ClientContext& context, const grpc::Status& answer) const;
};

absl::StatusOr<ResourceChannel> OpenResourceChannel(os::UniqueFd transport);

}  // namespace sluice::client
