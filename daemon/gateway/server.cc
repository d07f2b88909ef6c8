// SPDX-License-Identifier: Apache-2.0
#include "daemon/gateway/server.h"

#include <grpcpp/security/server_credentials.h>
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

constexpr int kHandshakeTimeoutMs = 10'000;
constexpr int kIdleConnectionMs = 60'000;

std::shared_ptr<grpc::ServerCredentials> Credentials(const GatewayOptions& options) {
  if (options.plaintext()) return grpc::InsecureServerCredentials();
  grpc::SslServerCredentialsOptions ssl(
      options.client_ca.empty() ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                                : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  ssl.pem_root_certs = options.client_ca;
  ssl.pem_key_cert_pairs.push_back({options.key, options.certificate});
  return grpc::SslServerCredentials(ssl);
}

int PollerCount() {
  const int cpus = static_cast<int>(std::thread::hardware_concurrency());
  return std::clamp(cpus / 8, 1, 8);
}

}  // namespace

absl::Status GatewayServer::Start(const GatewayOptions& options) {
  const std::vector<std::string> listen = wire::DistinctAddresses(options.listen);
  RETURN_IF_ERROR(wire::CheckListening(listen, wire::ListenCheck::kPorts, absl::ZeroDuration()));
  grpc::ServerBuilder builder;
  const std::shared_ptr<grpc::ServerCredentials> credentials = Credentials(options);
  std::vector<int> ports(listen.size(), 0);
  for (size_t i = 0; i < listen.size(); ++i) {
    builder.AddListeningPort(listen[i], credentials, &ports[i]);
  }
  for (const auto& [name, value] : wire::TransportArguments())
    builder.AddChannelArgument(name, value);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT,
                             0);  // A second daemon on the port must be told, not share it.
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeTimeoutMs);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kIdleConnectionMs);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreamsPerConnection);
  // As for the broker's own service (../resource_service.cc): ending a connection for its pings
  // costs more memory than they do.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  builder.SetMaxReceiveMessageSize(wire::kMaxMessageBytes);
  builder.RegisterService(&service_);
  builder.RegisterAsyncGenericService(&other_services_);
  queue_ = builder.AddCompletionQueue();
  server_ = builder.BuildAndStart();
  for (size_t i = 0; i < ports.size(); ++i) {
    if (server_ != nullptr && ports[i] != 0) continue;
    // Taken since the check above; gRPC's own line says by what.
    return absl::UnavailableError(absl::StrCat("cannot listen on ", listen[i]));
  }
  StreamSession::AcceptNext(this);
  StandardCall::AcceptNext(this);
  for (int i = 0; i < PollerCount(); ++i) pollers_.emplace_back([this] { Poll(); });
  for (size_t i = 0; i < ports.size(); ++i) {
    const std::string& address = listen[i];
    Log(LogLevel::kInfo, "gateway", "listening",
        {{"address", absl::StrCat(address.substr(0, address.rfind(':')), ":", ports[i])},
         {"tls", options.plaintext() ? "no" : (options.client_ca.empty() ? "yes" : "mutual")},
         {"token", options.tokens.empty() ? "no" : "yes"}});
  }
  return absl::OkStatus();
}

void GatewayServer::Poll() {
  void* tag = nullptr;
  bool ok = false;
  while (queue_->Next(&tag, &ok)) static_cast<Operation*>(tag)->Complete(ok);
}

void GatewayServer::Stop(absl::Duration grace) {
  if (grace == absl::InfiniteDuration()) return server_->Shutdown();
  server_->Shutdown(std::chrono::system_clock::now() + absl::ToChronoNanoseconds(grace));
}

}  // namespace sluice::gateway
