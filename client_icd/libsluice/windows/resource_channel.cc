// SPDX-License-Identifier: Apache-2.0
#include "client_icd/libsluice/resource_channel.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/os/lasting_thread.h"
#include "broker/os/local_socket.h"
#include "proto/network/loopback_proof.h"
#include "proto/resource_messages.h"
#include "proto/status_macros.h"

namespace sluice::client {
namespace {

constexpr int kTicketTimeoutMs = 10'000;  // It was sent before the pipe was.

// gRPC's threads for callbacks end with the last channel that has had one, and then take the I/O
// that they have begun for other channels with them (broker/os/lasting_thread.h). So this channel,
// on which a call fails before it connects, is kept.
void KeepCallbackThreads() {
  struct Kept {
    grpc::GenericStub stub{
        grpc::CreateChannel("ipv4:127.0.0.1:1", grpc::InsecureChannelCredentials())};
    grpc::ClientContext context;
    const grpc::Slice nothing;
    grpc::ByteBuffer request{&nothing, 1};  // Without a slice it is no message, and gRPC aborts.
    grpc::ByteBuffer reply;
  };
  static Kept* const kept = [] {
    auto* first = new Kept;
    first->context.TryCancel();
    first->stub.UnaryCall(&first->context, "/none", {}, &first->request, &first->reply,
                          [](const grpc::Status&) {});
    return first;
  }();
  static_cast<void>(kept);
}

}  // namespace

void ResourceChannel::Prepare(grpc::ClientContext* context) const {
  context->AddMetadata(wire::kLoopbackTokenKey, token);
}

grpc::Status ResourceChannel::Check(const grpc::ClientContext& context,
                                    const grpc::Status& answer) const {
  return wire::CheckLoopbackAnswer(proof, context, answer);
}

absl::StatusOr<ResourceChannel> OpenResourceChannel(os::UniqueFd transport) {
  RETURN_IF_ERROR(os::WaitReadable(transport.get(), kTicketTimeoutMs));
  char packet[wire::kMaxBrokerMessageBytes];
  ASSIGN_OR_RETURN(const size_t size,
                   os::ReceiveMessage(transport.get(), packet, sizeof(packet), nullptr, 0));
  if (size == 0) return absl::UnavailableError("the daemon is gone");
  wire::ResourceTicket ticket;
  if (!wire::ParseMessage(packet, size, &ticket) || ticket.port == 0 || ticket.port > 65535) {
    return absl::InternalError("a broken ticket from the daemon");
  }
  // A token is good for one connection to the port. Two of ours must not share one, one that is
  // idle must not be given up for another later, and a proxy that the environment names has no part
  // in this.
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_CLIENT_IDLE_TIMEOUT_MS, std::numeric_limits<int>::max());
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  os::RunWhereIoLasts(KeepCallbackThreads);
  ResourceChannel channel;
  channel.channel = grpc::CreateCustomChannel(absl::StrCat("ipv4:127.0.0.1:", ticket.port),
                                              grpc::InsecureChannelCredentials(), arguments);
  wire::LoopbackSecrets secrets = wire::SecretsOf(ticket.token, ticket.flags);
  channel.token = std::move(secrets.token);
  channel.proof = std::move(secrets.proof);
  channel.pipe = std::move(transport);
  return channel;
}

}  // namespace sluice::client
