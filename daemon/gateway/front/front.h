// SPDX-License-Identifier: Apache-2.0
//
// The front stands between the network and gRPC: it listens, ends TLS, counts connections, and
// hands gRPC those whose peers are known (README.md). platform_linux/gateway has it; on Windows
// (platform_win/gateway) gRPC listens and ends TLS itself, since it takes no socket from others
// there.
//
// Owner: GatewayServer. Thread-safe after Start.
#pragma once

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/server_context.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "daemon/gateway/front/admitted_peer.h"
#include "daemon/gateway/front/connection_limits.h"

namespace sluice::gateway {

// The files' contents; empty: none.
struct TlsFiles {
  std::string certificate;
  std::string key;
  std::string client_ca;
  std::string client_crl;
};

struct FrontOptions {
  std::vector<std::string> listen;  // Distinct addresses.
  TlsFiles tls;                     // Without a certificate: plaintext.
  bool asks_for_tokens = false;     // So a peer is known only once a call has shown one.
  ConnectionLimits limits;
};

class Front {
 public:
  static std::unique_ptr<Front> Create();
  virtual ~Front() = default;

  // Takes the ports, and adds to `builder` what it needs. The error names the address.
  virtual absl::Status Prepare(const FrontOptions& options, grpc::ServerBuilder* builder) = 0;
  // Lets peers in.
  virtual absl::Status Start(grpc::Server* server) = 0;
  // In the order of the addresses; after Start.
  virtual std::vector<int> Ports() const = 0;
  // Gives up the ports. Connections that are there go on.
  virtual void StopListening() = 0;

  virtual AdmittedPeer PeerOf(const grpc::ServerContext& call) = 0;
  // This call has shown who its peer is. False: there are as many connections as there may be.
  virtual bool Known(const grpc::ServerContext& call) = 0;

  // Sends what has just been written to this call now, on the calling thread, without waiting for
  // one of the front's to wake up.
  virtual void SendNow(const grpc::ServerContext& call) = 0;

  // Other files, for who comes from now on; connections whose certificate they do not let in end.
  virtual absl::Status Reload(const TlsFiles& files) = 0;
};

}  // namespace sluice::gateway
