// SPDX-License-Identifier: Apache-2.0
//
// DescribePlatforms: one call, answered at once from the snapshot that the broker gave. Starts no
// worker.
//
// Owner: itself, by its operations. Poller threads.
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/async_unary_call.h>

#include <memory>

#include "broker/gateway/operation.h"
#include "proto/control.pb.h"

namespace sluice {

class GatewayServer;

class DescribeCall : public std::enable_shared_from_this<DescribeCall> {
 public:
  static void AcceptNext(GatewayServer* server);
  explicit DescribeCall(GatewayServer* server) : server_(server) {}

 private:
  void OnAccepted(bool ok);
  void OnFinished(bool) {}

  GatewayServer* const server_;
  grpc::ServerContext context_;
  v1::DescribePlatformsRequest request_;
  grpc::ServerAsyncResponseWriter<v1::DescribePlatformsReply> responder_{&context_};
  CallOperation<DescribeCall> accept_op_{&DescribeCall::OnAccepted};
  CallOperation<DescribeCall> finish_op_{&DescribeCall::OnFinished};
};

}  // namespace sluice
