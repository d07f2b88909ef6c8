// SPDX-License-Identifier: Apache-2.0
// How the network is reached: the gRPC channel to a gateway, with the security that the environment
// asks for.
//
//   SLUICE_TLS_CA      PEM file: whom to trust; else the system's authorities, where Debian, Fedora
//                      or openSUSE keep them
//   SLUICE_TLS_CERT    PEM files: who we are (mutual TLS); both or none
//   SLUICE_TLS_KEY
//   SLUICE_TOKEN_FILE  a file whose first token is sent (proto/network/token_text.h)
//   SLUICE_ALLOW_PLAINTEXT=1   no TLS, also beyond this machine; without it only to
//                              127.0.0.0/8, [::1] and localhost
//   SLUICE_CONNECT_TIMEOUT_MS  how long to try to be connected; 2000 (connect/connect_limit.h)
//
// Thread-safe: no state but what gRPC keeps.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client_icd/connect/remote_plugin.h"

namespace sluice::client {

struct RemoteSecurity {
  bool tls = false;
  // The files' contents; empty: none.
  std::string roots;
  std::string roots_file;  // Empty: SLUICE_TLS_CA.
  std::string certificate;
  std::string key;
  std::string token;
};

// `environment` is EnvironmentVariable, or a test's. An error names the variable and what to do.
using Environment = std::function<std::optional<std::string>(const char* name)>;
using SystemFile = std::function<absl::StatusOr<std::string>(const char* path)>;
absl::StatusOr<std::string> ReadSystemFile(const char* path);
absl::StatusOr<RemoteSecurity> ChooseSecurity(const std::string& endpoint,
                                              const Environment& environment,
                                              const SystemFile& read = &ReadSystemFile);

// Not connected yet. Every channel has a connection of its own.
std::shared_ptr<grpc::Channel> MakeChannel(const std::string& endpoint,
                                           const RemoteSecurity& security);

// Gives the call its token.
void Authorize(const RemoteSecurity& security, grpc::ClientContext* context);

// A peer that has not taken the connection in this time is not there. One that has taken it may be
// busy: it has kAnswerTimeout, and on Windows, where it is not seen, just this.
std::chrono::milliseconds ConnectTimeout();
inline constexpr std::chrono::milliseconds kAnswerTimeout(kRemoteAnswerTimeoutMs);

// The platform snapshot of the daemon behind `endpoint`, which has to be connected within
// ConnectTimeout of `timeout`. With it comes the daemon's version, if it tells one.
absl::StatusOr<std::string> DescribePlatforms(const std::string& endpoint,
                                              std::chrono::milliseconds timeout,
                                              std::string* daemon_version = nullptr);

// Makes gRPC ready, once per process: silent, and never taken down again, since its threads may
// still run while the process ends. An error where GrpcTrouble has one.
absl::Status PrepareGrpc();

// Why gRPC is of no use in this process any more, or null: the process is the child of a fork, or
// has closed the descriptors that gRPC works with. Whoever finds this leaves gRPC alone: it would
// wait for threads that are not there, or use descriptors that are somebody else's by now.
const char* GrpcTrouble();

// "UNAVAILABLE: connection refused": for a person.
std::string Describe(const grpc::Status& status);
// Advice about TLS, in brackets, if the failure looks like it; else nothing.
std::string TlsHint(const grpc::Status& status, const RemoteSecurity& security);
// The likely meaning of a connection that Windows refuses, in brackets; else nothing.
std::string ConnectHint(const grpc::Status& status);

}  // namespace sluice::client
