// SPDX-License-Identifier: Apache-2.0
#include "daemon/gateway/server.h"

#include <grpcpp/server_builder.h>

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "broker/base/log.h"
#include "daemon/gateway/operation.h"
#include "daemon/gateway/standard_call.h"
#include "daemon/gateway/stream_session.h"
#include "proto/network/listen_check.h"
#include "proto/network/transport_arguments.h"
#include "proto/status_macros.h"

namespace sluice::gateway {
namespace {

constexpr int kIdleConnectionMs = 60'000;

int PollerCount() {
  const int cpus = static_cast<int>(std::thread::hardware_concurrency());
  return std::clamp(cpus / 8, 1, 8);
}

}  // namespace

absl::Status GatewayServer::Start(const GatewayOptions& options) {
  const std::vector<std::string> listen = wire::DistinctAddresses(options.listen);
  RETURN_IF_ERROR(wire::CheckListening(listen, wire::ListenCheck::kPorts, absl::ZeroDuration()));
  FrontOptions front;
  front.listen = listen;
  front.tls = options.tls;
  front.asks_for_tokens = !options.tokens.empty() || !options.token_keys.empty();
  front.limits = options.limits;
  grpc::ServerBuilder builder;
  RETURN_IF_ERROR(front_->Prepare(front, &builder));
  for (const auto& [name, value] : wire::TransportArguments())
    builder.AddChannelArgument(name, value);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kIdleConnectionMs);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreamsPerConnection);
  // As for the broker's own service (broker/resources/service.cc): ending a connection for its
  // pings costs more memory than they do.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  builder.SetMaxReceiveMessageSize(wire::kMaxMessageBytes);
  builder.RegisterService(&service_);
  builder.RegisterAsyncGenericService(&other_services_);
  queue_ = builder.AddCompletionQueue();
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) return absl::UnavailableError("gRPC does not start");
  StreamSession::AcceptNext(this);
  StandardCall::AcceptNext(this);
  for (int i = 0; i < PollerCount(); ++i) pollers_.emplace_back([this] { Poll(); });
  RETURN_IF_ERROR(front_->Start(server_.get()));
  const std::vector<int> ports = front_->Ports();
  for (size_t i = 0; i < ports.size(); ++i) {
    const std::string& address = listen[i];
    Log(LogLevel::kInfo, "gateway", "listening",
        {{"address", absl::StrCat(address.substr(0, address.rfind(':')), ":", ports[i])},
         {"tls", options.plaintext() ? "no" : (options.tls.client_ca.empty() ? "yes" : "mutual")},
         {"token", front.asks_for_tokens ? "yes" : "no"}});
  }
  return absl::OkStatus();
}

void GatewayServer::Poll() {
  void* tag = nullptr;
  bool ok = false;
  while (queue_->Next(&tag, &ok)) static_cast<Operation*>(tag)->Complete(ok);
}

absl::Status GatewayServer::Reload(const TlsFiles& files, Authenticator authenticator) {
  RETURN_IF_ERROR(front_->Reload(files));
  absl::MutexLock lock(&mu_);
  authenticator_ = std::make_shared<const Authenticator>(std::move(authenticator));
  return absl::OkStatus();
}

void GatewayServer::Stop(absl::Duration grace) {
  front_->StopListening();
  if (grace == absl::InfiniteDuration()) return server_->Shutdown();
  server_->Shutdown(std::chrono::system_clock::now() + absl::ToChronoNanoseconds(grace));
}

}  // namespace sluice::gateway
