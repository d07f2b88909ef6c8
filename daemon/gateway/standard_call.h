// SPDX-License-Identifier: Apache-2.0
//
// Every call that is no session's stream. DescribePlatforms is answered from the snapshot that the
// broker gave. The services that every gRPC server is expected to have, grpc.health.v1.Health and
// grpc.reflection.v1alpha.ServerReflection, are on the gateway's own queue (server.h says why not
// gRPC's ready-made ones). They say nothing that the published protocol does not, so they need no
// token. They are counted apart from calls that need one. Any other method is answered with
// UNIMPLEMENTED. Every call but a watch has a time limit.
//
// Owner: itself, by its operations. Poller threads; one operation at a time.
#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/support/byte_buffer.h>

#include <memory>
#include <optional>
#include <string>

#include "daemon/gateway/connection_calls.h"
#include "daemon/gateway/operation.h"

namespace sluice::gateway {

class GatewayServer;

// The answer to one message of each service; nothing: it is malformed.
std::optional<std::string> AnswerReflection(const std::string& request);
enum class HealthAnswer { kServing, kUnknownService, kMalformed };
HealthAnswer AnswerHealth(const std::string& request);

class StandardCall : public std::enable_shared_from_this<StandardCall> {
 public:
  static void AcceptNext(GatewayServer* server);
  explicit StandardCall(GatewayServer* server) : server_(server) {}
  ~StandardCall();

 private:
  enum class Kind { kDescribe, kHealthCheck, kHealthWatch, kReflection };

  void OnAccepted(bool ok);
  void OnRead(bool ok);
  void OnWritten(bool ok);
  void OnFinished(bool) { timer_.Cancel(); }
  void OnTimeout(bool ok);

  void Answer(const std::string& request);
  void Describe(const std::string& request);
  void Write(const std::string& message);
  void Finish(grpc::StatusCode code, const std::string& message);

  GatewayServer* const server_;
  ConnectionCalls::Place place_;
  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter stream_{&context_};
  CallOperation<StandardCall> accept_op_{&StandardCall::OnAccepted};
  CallOperation<StandardCall> read_op_{&StandardCall::OnRead};
  CallOperation<StandardCall> write_op_{&StandardCall::OnWritten};
  CallOperation<StandardCall> finish_op_{&StandardCall::OnFinished};
  Kind kind_ = Kind::kHealthCheck;
  std::string peer_;  // kDescribe: as it is authenticated.
  CallCount* counted_in_ = nullptr;
  grpc::Alarm timer_;
  CallOperation<StandardCall> timer_op_{&StandardCall::OnTimeout};
  grpc::ByteBuffer incoming_;
};

}  // namespace sluice::gateway
