// SPDX-License-Identifier: Apache-2.0
#include "broker/attach_stream.h"

#include <grpcpp/server_posix.h>

namespace sluice {

absl::Status AttachStream(grpc::Server* server, UniqueFd connected_socket) {
  grpc::AddInsecureChannelFromFd(server, connected_socket.release());
  return absl::OkStatus();
}

}  // namespace sluice
