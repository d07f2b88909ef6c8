// SPDX-License-Identifier: Apache-2.0
//
// Gives a gRPC server a connection that has not come through a port of its own. The one call of
// gRPC's that is not there on every system, so that platform_* has it. Any thread.
#pragma once

#include <grpcpp/server.h>

#include "absl/status/status.h"
#include "broker/os/scoped_handle.h"

namespace sluice {

absl::Status AttachStream(grpc::Server* server, UniqueFd connected_socket);

}  // namespace sluice
