// SPDX-License-Identifier: Apache-2.0
#include "client_icd/remote/remote_channel.h"

#include <grpcpp/completion_queue.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "broker/base/peer_version.h"
#include "broker/os/descriptor_identity.h"
#include "broker/os/file.h"
#include "broker/os/this_process.h"
#include "broker/os/threads.h"
#include "client_icd/connect/connect_limit.h"
#include "client_icd/remote/grpc_start.h"
#include "proto/network/loopback.h"
#include "proto/network/message_reader.h"
#include "proto/network/tls_files.h"
#include "proto/network/token_text.h"
#include "proto/network/transport_arguments.h"
#include "proto/status_macros.h"

namespace sluice::client {
namespace {

constexpr char kDescribeMethod[] = "/sluice.v1.Session/DescribePlatforms";
// Where systems keep the authorities that they trust, as one file: Debian, Arch and Alpine; Fedora
// and RHEL up to 42 and 10; Fedora since; openSUSE.
constexpr const char* kSystemRoots[] = {
    "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/ca-bundle.pem"};
constexpr size_t kMaxFileBytes = 4 << 20;  // The world's authorities are less than a tenth of it.
constexpr int kMaxDescribeBytes = 64 << 20;
constexpr uint32_t kDefaultConnectMs = 2'000;
// DescribePlatformsRequest, DescribePlatformsReply.
constexpr uint32_t kFeaturesField = 1;
constexpr uint32_t kProcessNameField = 2;
constexpr uint32_t kSnapshotField = 2;
constexpr uint32_t kMessageField = 3;

// Beyond a call's deadline.
constexpr std::chrono::milliseconds kTimersPatience(1'000);

std::atomic<bool> forked{false};
// Opened beside gRPC's own descriptors: closed with them. Set when PrepareGrpc has made it ready.
std::atomic<const os::DescriptorIdentity*> sentinel{nullptr};

// gRPC works on these while it asks. Leaked if it does not let go in time.
struct DescribeCall {
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  grpc::ByteBuffer reply;
  grpc::Status status;
  std::unique_ptr<grpc::ClientAsyncResponseReader<grpc::ByteBuffer>> reader;
};

std::string Value(const Environment& environment, const char* name) {
  return environment(name).value_or("");
}

absl::StatusOr<std::string> ReadFileOf(const Environment& environment, const char* name) {
  const std::string path = Value(environment, name);
  if (path.empty()) return std::string();
  absl::StatusOr<std::string> content = os::ReadNamedFile(path, kMaxFileBytes);
  if (!content.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": ", content.status().message()));
  }
  if (content->empty())
    return absl::InvalidArgumentError(absl::StrCat(name, ": ", path, " is empty"));
  return content;
}

// As messages call it: the variable, and the file.
wire::PemFile Named(const Environment& environment, const char* name, const std::string& content) {
  return {absl::StrCat(name, "=", Value(environment, name)), content};
}

// gRPC says of a file that holds something else no more than that it has no address.
absl::Status CheckFiles(const Environment& environment, const RemoteSecurity& security) {
  if (!security.roots.empty()) {
    RETURN_IF_ERROR(wire::CheckAuthorities(Named(environment, "SLUICE_TLS_CA", security.roots)));
  }
  if (security.certificate.empty()) return absl::OkStatus();
  return wire::CheckIdentity(Named(environment, "SLUICE_TLS_CERT", security.certificate),
                             Named(environment, "SLUICE_TLS_KEY", security.key));
}

// The system's authorities. The error names the places that were looked at, and why one that is
// there is of no use.
absl::Status FindSystemRoots(const SystemFile& read, RemoteSecurity* security) {
  std::vector<std::string> looked_at;
  for (const char* path : kSystemRoots) {
    absl::StatusOr<std::string> content = read(path);
    if (content.ok() && !content->empty()) {
      security->roots = *std::move(content);
      security->roots_file = path;
      return absl::OkStatus();
    }
    if (content.ok()) {
      looked_at.push_back(absl::StrCat(path, " is empty"));
    } else if (absl::IsNotFound(content.status())) {
      looked_at.push_back(absl::StrCat(path, " is not there"));
    } else {
      looked_at.emplace_back(content.status().message());
    }
  }
  return absl::NotFoundError(absl::StrJoin(looked_at, ", "));
}

absl::StatusOr<std::string> ReadToken(const Environment& environment) {
  ASSIGN_OR_RETURN(const std::string content, ReadFileOf(environment, "SLUICE_TOKEN_FILE"));
  if (content.empty()) return content;  // There is no such file, and need not be.
  absl::StatusOr<std::vector<std::string>> tokens = wire::ParseTokens(content, /*most=*/1);
  if (tokens.ok()) return std::move(tokens->front());
  return absl::InvalidArgumentError(
      absl::StrCat("SLUICE_TOKEN_FILE: ", Value(environment, "SLUICE_TOKEN_FILE"), ": ",
                   tokens.status().message()));
}

}  // namespace

absl::StatusOr<RemoteSecurity> ChooseSecurity(const std::string& endpoint,
                                              const Environment& environment,
                                              const SystemFile& read) {
  RemoteSecurity security;
  ASSIGN_OR_RETURN(security.roots, ReadFileOf(environment, "SLUICE_TLS_CA"));
  ASSIGN_OR_RETURN(security.certificate, ReadFileOf(environment, "SLUICE_TLS_CERT"));
  ASSIGN_OR_RETURN(security.key, ReadFileOf(environment, "SLUICE_TLS_KEY"));
  ASSIGN_OR_RETURN(security.token, ReadToken(environment));
  if (security.certificate.empty() != security.key.empty()) {
    return absl::InvalidArgumentError(
        "SLUICE_TLS_CERT and SLUICE_TLS_KEY belong together: set both or none");
  }
  RETURN_IF_ERROR(CheckFiles(environment, security));
  const bool plaintext_allowed =
      wire::IsLoopbackTarget(endpoint) || Value(environment, "SLUICE_ALLOW_PLAINTEXT") == "1";
  security.tls = !security.roots.empty() || !security.certificate.empty() || !plaintext_allowed;
  if (!security.tls || !security.roots.empty()) return security;
  if (const absl::Status roots = FindSystemRoots(read, &security); !roots.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        endpoint,
        " is reached through TLS, and this system has no list of the authorities that it trusts (",
        roots.message(),
        "): set SLUICE_TLS_CA to the certificate of that daemon's authority, or install "
        "ca-certificates if a public one has signed it (or set SLUICE_ALLOW_PLAINTEXT=1 if nobody "
        "can listen on the way)"));
  }
  return security;
}

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& endpoint,
                                           const RemoteSecurity& security) {
  grpc::ChannelArguments arguments;
  for (const auto& [name, value] : wire::TransportArguments()) arguments.SetInt(name, value);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetMaxReceiveMessageSize(kMaxDescribeBytes);
  std::shared_ptr<grpc::ChannelCredentials> credentials;
  if (security.tls) {
    grpc::SslCredentialsOptions ssl;
    ssl.pem_root_certs = security.roots;
    ssl.pem_cert_chain = security.certificate;
    ssl.pem_private_key = security.key;
    credentials = grpc::SslCredentials(ssl);
  } else {
    credentials = grpc::InsecureChannelCredentials();
  }
  return grpc::CreateCustomChannel(endpoint, credentials, arguments);
}

void Authorize(const RemoteSecurity& security, grpc::ClientContext* context) {
  if (!security.token.empty()) context->AddMetadata("authorization", "Bearer " + security.token);
}

std::string TlsHint(const grpc::Status& status, const RemoteSecurity& security) {
  if (status.error_code() != grpc::StatusCode::UNAVAILABLE) return "";
  const std::string message = absl::AsciiStrToLower(status.error_message());
  const auto says = [&message](const char* text) { return absl::StrContains(message, text); };
  // OpenSSL's words, which BoringSSL has with underscores.
  if (says("wrong version number") || says("wrong_version_number")) {
    return " (that daemon takes no TLS there: unset SLUICE_TLS_CA, SLUICE_TLS_CERT and "
           "SLUICE_TLS_KEY; another machine's also needs SLUICE_ALLOW_PLAINTEXT=1, if nobody can "
           "listen on the way)";
  }
  if (says("certificate verify failed") || says("certificate_verify_failed")) {
    if (security.roots_file.empty())
      return " (the daemon's certificate is not from an authority in SLUICE_TLS_CA, or has "
             "expired)";
    return absl::StrCat(
        " (the daemon's certificate is not from an authority that this system trusts (",
        security.roots_file,
        "), or has expired: set SLUICE_TLS_CA to the certificate of its authority)");
  }
  if (says("is not in peer certificate") || says("hostname verification")) {
    return " (the daemon's certificate is for another name: write that name into SLUICE_ENDPOINT, "
           "or "
           "give the daemon a certificate for this one)";
  }
  // A server that breaks the handshake off says no more than this; on Windows, "read failed".
  if (!says("closed") && !says("reset") && !says("end of tcp stream") && !says("read failed")) {
    return "";
  }
  if (!security.tls) {
    return " (if that daemon takes TLS: set SLUICE_TLS_CA to the certificate of its authority)";
  }
  if (security.certificate.empty()) {
    return " (if that daemon asks for a client certificate: set SLUICE_TLS_CERT and "
           "SLUICE_TLS_KEY; "
           "if it takes no TLS, unset SLUICE_TLS_CA)";
  }
  return " (that daemon may not know the authority of the certificate in SLUICE_TLS_CERT, or the "
         "certificate may have expired or been revoked)";
}

absl::StatusOr<std::string> ReadSystemFile(const char* path) {
  return os::ReadNamedFile(path, kMaxFileBytes);
}

std::string ConnectHint(const grpc::Status& status) {
  if (!absl::EndsWith(status.error_message(), "WSA Error")) return "";
  return " (gRPC says no more on Windows: most often no daemon listens at that address and port, "
         "or "
         "a firewall is before it)";
}

std::chrono::milliseconds ConnectTimeout() {
  return std::chrono::milliseconds(ConnectLimitMs().value_or(kDefaultConnectMs));
}

absl::StatusOr<std::string> DescribePlatforms(const std::string& endpoint,
                                              std::chrono::milliseconds timeout,
                                              std::string* daemon_version) {
  const auto start = std::chrono::system_clock::now();
  const auto deadline = start + timeout;
  const std::chrono::milliseconds to_connect = std::min(ConnectTimeout(), timeout);
  RETURN_IF_ERROR(PrepareGrpc());
  const std::vector<os::DescriptorIdentity> before = os::OpenSockets();
  ASSIGN_OR_RETURN(const RemoteSecurity security,
                   ChooseSecurity(endpoint, os::EnvironmentVariable));
  auto call = std::make_unique<DescribeCall>();
  grpc::GenericStub stub(MakeChannel(endpoint, security));
  call->context.set_deadline(deadline);
  Authorize(security, &call->context);
  std::string request;
  wire::AppendStringField(kFeaturesField, VersionFeature(), &request);
  wire::AppendStringField(kProcessNameField, os::ProcessName(), &request);
  const grpc::Slice slice(request);
  call->reader = stub.PrepareUnaryCall(&call->context, kDescribeMethod, grpc::ByteBuffer(&slice, 1),
                                       &call->queue);
  call->reader->StartCall();
  call->reader->Finish(&call->reply, &call->status, nullptr);
  const grpc::Status& status = call->status;
  void* tag = nullptr;
  bool ok = false;
  auto next = call->queue.AsyncNext(&tag, &ok, start + to_connect);
  const bool not_there = next == grpc::CompletionQueue::TIMEOUT && !os::HasNewConnection(before);
  if (not_there) call->context.TryCancel();
  // The call's deadline bounds this, unless gRPC has found no thread for its timers.
  if (next == grpc::CompletionQueue::TIMEOUT)
    next = call->queue.AsyncNext(&tag, &ok, deadline + kTimersPatience);
  if (next != grpc::CompletionQueue::GOT_EVENT) {
    static_cast<void>(call.release());  // gRPC still works on it.
    return absl::UnavailableError("gRPC does not answer");
  }
  call->queue.Shutdown();
  while (call->queue.Next(&tag, &ok)) {
  }
  if (not_there && !status.ok()) {
    return absl::UnavailableError(absl::StrCat("no connection within ", to_connect.count(), " ms"));
  }
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED)
    return absl::UnavailableError(NoAnswerWithin(timeout.count()));
  if (!status.ok()) {
    return absl::UnavailableError(
        absl::StrCat(Describe(status), TlsHint(status, security), ConnectHint(status)));
  }

  wire::MessageReader reader;
  if (!reader.Reset(call->reply))
    return absl::InvalidArgumentError("the daemon's description cannot be read");
  std::string snapshot;
  std::string message;
  std::string version;
  uint32_t field = 0;
  wire::MessageReader::Step step;
  while ((step = reader.NextField(&field)) == wire::MessageReader::Step::kField) {
    if (field == kFeaturesField && version.empty()) version = VersionIn(reader.Rest());
    if (field == kSnapshotField) snapshot = reader.Rest();
    if (field == kMessageField) message = reader.Rest();
  }
  if (step == wire::MessageReader::Step::kMalformed)
    return absl::InvalidArgumentError("the daemon's description is malformed");
  if (snapshot.empty() && !message.empty()) return absl::UnavailableError(message);
  if (daemon_version != nullptr) *daemon_version = version;
  return snapshot;
}

absl::Status PrepareGrpc() {
  static absl::Mutex* const mu = new absl::Mutex;
  if (const char* trouble = GrpcTrouble(); trouble != nullptr)
    return absl::FailedPreconditionError(trouble);
  if (sentinel.load(std::memory_order_acquire) != nullptr) return absl::OkStatus();
  absl::MutexLock lock(mu);
  if (sentinel.load(std::memory_order_relaxed) != nullptr) return absl::OkStatus();
  RETURN_IF_ERROR(StartGrpc());
  os::AtFork(nullptr, nullptr, [] { forked.store(true, std::memory_order_relaxed); });
  sentinel.store(new os::DescriptorIdentity(os::IdentityOf(os::OpenSentinel().release())),
                 std::memory_order_release);
  return absl::OkStatus();
}

const char* GrpcTrouble() {
  if (forked.load(std::memory_order_relaxed)) {
    return "this process is a fork of one that has used a remote device, which gRPC does not "
           "survive";
  }
  if (os::OtherThreadsWereEnded()) return "the process ends, and gRPC's threads have been ended";
  const os::DescriptorIdentity* opened = sentinel.load(std::memory_order_acquire);
  if (opened == nullptr || os::IsStillThere(*opened)) return nullptr;
  return "this process has closed the descriptors that gRPC had opened";
}

std::string Describe(const grpc::Status& status) {
  static constexpr const char* kNames[] = {"OK",
                                           "CANCELLED",
                                           "UNKNOWN",
                                           "INVALID_ARGUMENT",
                                           "DEADLINE_EXCEEDED",
                                           "NOT_FOUND",
                                           "ALREADY_EXISTS",
                                           "PERMISSION_DENIED",
                                           "RESOURCE_EXHAUSTED",
                                           "FAILED_PRECONDITION",
                                           "ABORTED",
                                           "OUT_OF_RANGE",
                                           "UNIMPLEMENTED",
                                           "INTERNAL",
                                           "UNAVAILABLE",
                                           "DATA_LOSS",
                                           "UNAUTHENTICATED"};
  const auto code = static_cast<size_t>(status.error_code());
  return absl::StrCat(code < std::size(kNames) ? kNames[code] : "error", ": ",
                      status.error_message());
}

}  // namespace sluice::client
