// SPDX-License-Identifier: Apache-2.0
#include "broker/gateway/describe_call.h"

#include "broker/base/log.h"
#include "broker/gateway/server.h"

namespace sluice {

void DescribeCall::AcceptNext(GatewayServer* server) {
  const auto call = std::make_shared<DescribeCall>(server);
  server->service().RequestDescribePlatforms(&call->context_, &call->request_, &call->responder_,
                                             server->queue(), server->queue(),
                                             call->accept_op_.Start(call));
}

void DescribeCall::OnAccepted(bool ok) {
  if (!ok) return;
  AcceptNext(server_);
  const absl::StatusOr<std::string> peer = server_->authenticator().Authenticate(context_);
  void* const tag = finish_op_.Start(shared_from_this());
  if (!peer.ok()) {
    Log(LogLevel::kWarning, "gateway", "client refused",
        {{"peer", PeerHost(context_.peer())}, {"reason", std::string(peer.status().message())}});
    responder_.FinishWithError(
        {grpc::StatusCode::UNAUTHENTICATED, std::string(peer.status().message())}, tag);
    return;
  }
  Log(LogLevel::kDebug, "gateway", "platforms described",
      {{"peer", *peer}, {"process", request_.process_name()}});
  v1::DescribePlatformsReply reply;
  BrokerLink::Snapshot snapshot = server_->link().snapshot();
  reply.set_snapshot(std::move(snapshot.bytes));
  reply.set_message(std::move(snapshot.message));
  responder_.Finish(reply, grpc::Status::OK, tag);
}

}  // namespace sluice
