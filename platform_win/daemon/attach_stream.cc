// SPDX-License-Identifier: Apache-2.0
#include "broker/attach_stream.h"

namespace sluice {

// gRPC takes connected sockets on POSIX only. Nobody comes here: CreateStreamPair has refused.
absl::Status AttachStream(grpc::Server*, UniqueFd) {
  return absl::UnimplementedError("gRPC on Windows takes no connected socket");
}

}  // namespace sluice
