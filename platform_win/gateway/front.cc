// SPDX-License-Identifier: Apache-2.0
// The front on Windows. gRPC takes no sockets from others there, so it listens and ends TLS itself.
// So connections are not counted before their calls, and files are not reloaded.
#include "daemon/gateway/front/front.h"

#include <grpcpp/security/server_credentials.h>

#include "absl/strings/str_cat.h"
#include "daemon/gateway/auth.h"

namespace sluice::gateway {
namespace {

constexpr int kHandshakeTimeoutMs = 10'000;

std::shared_ptr<grpc::ServerCredentials> Credentials(const TlsFiles& files) {
  if (files.certificate.empty()) return grpc::InsecureServerCredentials();
  grpc::SslServerCredentialsOptions ssl(
      files.client_ca.empty() ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                              : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  ssl.pem_root_certs = files.client_ca;
  ssl.pem_key_cert_pairs.push_back({files.key, files.certificate});
  return grpc::SslServerCredentials(ssl);
}

class GrpcFront final : public Front {
 public:
  absl::Status Prepare(const FrontOptions& options, grpc::ServerBuilder* builder) override {
    if (!options.tls.client_crl.empty())
      return absl::UnimplementedError("client_crl: on Windows there are no revocation lists");
    listen_ = options.listen;
    ports_.resize(listen_.size(), 0);
    const std::shared_ptr<grpc::ServerCredentials> credentials = Credentials(options.tls);
    for (size_t i = 0; i < listen_.size(); ++i)
      builder->AddListeningPort(listen_[i], credentials, &ports_[i]);
    // A second daemon on the port must fail, not share it.
    builder->AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder->AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeTimeoutMs);
    return absl::OkStatus();
  }

  absl::Status Start(grpc::Server* server) override {
    for (size_t i = 0; i < ports_.size(); ++i) {
      if (server != nullptr && ports_[i] != 0) continue;
      // The port was taken since the check; gRPC's own log line has the reason.
      return absl::UnavailableError(absl::StrCat("cannot listen on ", listen_[i]));
    }
    return absl::OkStatus();
  }

  std::vector<int> Ports() const override { return ports_; }
  void StopListening() override {}  // The server's Shutdown does it.
  AdmittedPeer PeerOf(const grpc::ServerContext& call) override { return PeerOfGrpc(call); }
  bool Known(const grpc::ServerContext&) override { return true; }
  void SendNow(const grpc::ServerContext&) override {}  // gRPC has sent it.
  absl::Status Reload(const TlsFiles&) override {
    return absl::UnimplementedError("on Windows certificates are read when the service starts");
  }

 private:
  std::vector<std::string> listen_;
  std::vector<int> ports_;
};

}  // namespace

std::unique_ptr<Front> Front::Create() { return std::make_unique<GrpcFront>(); }

}  // namespace sluice::gateway
