// SPDX-License-Identifier: Apache-2.0
#include "client_icd/libsluice/resource_channel.h"

#include <grpcpp/create_channel_posix.h>

#include "broker/os/local_socket.h"
#include "proto/status_macros.h"

namespace sluice::client {

void ResourceChannel::Prepare(grpc::ClientContext*) const {}

grpc::Status ResourceChannel::Check(const grpc::ClientContext&, const grpc::Status& answer) const {
  return answer;
}

absl::StatusOr<ResourceChannel> OpenResourceChannel(os::UniqueFd transport) {
  RETURN_IF_ERROR(os::SetNonBlocking(transport.get(), true));
  ResourceChannel channel;
  channel.channel = grpc::CreateInsecureChannelFromFd("sluice", transport.release());
  return channel;
}

}  // namespace sluice::client
