// SPDX-License-Identifier: Apache-2.0
#include "deploy/sluicectl/admin_channel.h"

#include <grpcpp/create_channel.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/os/local_socket.h"
#include "proto/broker_messages.h"
#include "proto/network/loopback_proof.h"

namespace sluice::ctl {

void AdminChannel::Prepare(grpc::ClientContext* context) const {
  context->AddMetadata(wire::kLoopbackTokenKey, token);
}

grpc::Status AdminChannel::Check(const grpc::ClientContext& context,
                                 const grpc::Status& answer) const {
  return wire::CheckLoopbackAnswer(proof, context, answer);
}

absl::StatusOr<AdminChannel> OpenAdminChannel(const std::string& name, int timeout_ms) {
  absl::StatusOr<os::UniqueFd> pipe = os::ConnectLocal(name, timeout_ms);
  if (!pipe.ok()) return pipe.status();
  if (absl::Status came = os::WaitReadable(pipe->get(), timeout_ms); !came.ok()) return came;
  char packet[wire::kMaxBrokerMessageBytes];
  const absl::StatusOr<size_t> size =
      os::ReceiveMessage(pipe->get(), packet, sizeof(packet), nullptr, 0);
  if (!size.ok()) return size.status();
  wire::AdminTicket ticket;
  if (!wire::ParseMessage(packet, *size, &ticket) || ticket.port == 0 || ticket.port > 65535) {
    return absl::UnavailableError("what answers there is no sluiced");
  }
  AdminChannel channel;
  channel.channel = grpc::CreateChannel(absl::StrCat("ipv4:127.0.0.1:", ticket.port),
                                        grpc::InsecureChannelCredentials());
  wire::LoopbackSecrets secrets = wire::SecretsOf(ticket.token, ticket.flags);
  channel.token = std::move(secrets.token);
  channel.proof = std::move(secrets.proof);
  channel.pipe = *std::move(pipe);
  return channel;
}

}  // namespace sluice::ctl
