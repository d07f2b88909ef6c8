// SPDX-License-Identifier: Apache-2.0
#include "broker/resources/listener.h"

#include <cstring>
#include <utility>

#include "broker/os/local_socket.h"
#include "proto/network/loopback_tokens.h"
#include "proto/resource_messages.h"
#include "proto/status_macros.h"

namespace sluice::broker {
namespace {

class LoopbackPort final : public ResourceListener {
 public:
  absl::StatusOr<std::unique_ptr<grpc::Server>> Start(grpc::ServerBuilder* builder) override {
    builder->AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    std::unique_ptr<grpc::Server> server = builder->BuildAndStart();
    if (server == nullptr || port_ == 0) {
      return absl::UnavailableError("cannot listen on a port of loopback for resources");
    }
    return server;
  }

  // The client's end is a pipe with the token in it. Nothing else is ever sent there: when it ends,
  // the connection ends.
  absl::StatusOr<Ends> Open(uint64_t connection) override {
    ASSIGN_OR_RETURN(auto pair, os::CreateSocketPair(os::FirstEnd::kStays));
    RETURN_IF_ERROR(os::SetNonBlocking(pair.first.get(), true));
    ASSIGN_OR_RETURN(const wire::LoopbackToken token, tokens_.Issue(connection));
    auto ticket = wire::MakeMessage<wire::ResourceTicket>();
    ticket.port = static_cast<uint32_t>(port_);
    ticket.flags = wire::kTicketProves;
    std::memcpy(ticket.token, token.data(), token.size());
    if (absl::Status sent = os::SendMessage(pair.first.get(), &ticket, sizeof(ticket));
        !sent.ok()) {
      tokens_.Revoke(connection);
      return sent;
    }
    return Ends{std::move(pair.first), std::move(pair.second)};
  }

  void Close(uint64_t connection) override { tokens_.Revoke(connection); }

  uint64_t ConnectionOf(const grpc::CallbackServerContext& context) override {
    return Admit(context).id;
  }

  void Prove(grpc::CallbackServerContext* context) override {
    if (const std::string proof = Admit(*context).proof; !proof.empty())
      context->AddInitialMetadata(wire::kLoopbackProofKey, proof);
  }

 private:
  wire::LoopbackTokens::Admitted Admit(const grpc::CallbackServerContext& context) {
    const auto shown = context.client_metadata().find(wire::kLoopbackTokenKey);
    if (shown == context.client_metadata().end()) return {};
    return tokens_.Admit({shown->second.data(), shown->second.size()}, context.peer())
        .value_or(wire::LoopbackTokens::Admitted());
  }

  int port_ = 0;
  wire::LoopbackTokens tokens_;
};

}  // namespace

std::unique_ptr<ResourceListener> ResourceListener::Create() {
  return std::make_unique<LoopbackPort>();
}

}  // namespace sluice::broker
