// SPDX-License-Identifier: Apache-2.0
#include "client_icd/broker_connection.h"

#include <errno.h>
#include <string.h>

#include <cstdlib>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "broker/broker_messages.h"
#include "broker/os/local_socket.h"
#include "broker/os/shared_memory.h"
#include "client_icd/ring_transport.h"
#include "proto/status_macros.h"

namespace sluice {
namespace {

constexpr int kConnectTimeoutMs = 1'000;
// Longer than an answer takes: the service manager may have to start the daemon first.
constexpr int kWelcomeTimeoutMs = 10'000;
constexpr int kSessionTimeoutMs = 30'000;
constexpr size_t kMaxSnapshotBytes = size_t{64} << 20;

// Receives one message of type T. A message of another type is skipped: it answers an earlier call
// that timed out.
template <typename T>
absl::StatusOr<T> Receive(int socket, int timeout_ms, std::vector<UniqueFd>* fds) {
  while (true) {
    RETURN_IF_ERROR(WaitReadable(socket, timeout_ms));
    char packet[kMaxBrokerMessageBytes];
    ASSIGN_OR_RETURN(const size_t bytes, ReceiveMessage(socket, packet, sizeof(packet), fds, 1));
    if (bytes == 0) return absl::AbortedError("the daemon closed the connection");
    T message;
    if (ParseMessage(packet, bytes, &message)) {
      if (!IsTerminated(message.message))
        return absl::InvalidArgumentError("a text without an end from the daemon");
      return message;
    }
    if (PeekMessageType(packet, bytes) == 0)
      return absl::InvalidArgumentError("a broken message from the daemon");
  }
}

std::string Refusal(const char* what, int status, const char* message) {
  return absl::StrCat(what, ": ", message[0] != '\0' ? message : ::strerror(status));
}

}  // namespace

absl::StatusOr<std::unique_ptr<BrokerConnection>> BrokerConnection::Connect(const std::string& path,
                                                                            std::string* snapshot) {
  ASSIGN_OR_RETURN(UniqueFd socket, ConnectLocal(path, kConnectTimeoutMs));
  Hello hello = MakeMessage<Hello>();
  SetString(hello.features, "");
  SetString(hello.process_name, ::program_invocation_short_name);
  RETURN_IF_ERROR(SendMessage(socket.get(), &hello, sizeof(hello)));
  std::vector<UniqueFd> fds;
  ASSIGN_OR_RETURN(const Welcome welcome, Receive<Welcome>(socket.get(), kWelcomeTimeoutMs, &fds));
  if (welcome.status != 0) {
    return absl::PermissionDeniedError(
        Refusal("the daemon refuses this user", welcome.status, welcome.message));
  }
  snapshot->clear();
  if (welcome.snapshot_size != 0) {
    if (fds.size() != 1) return absl::InvalidArgumentError("a welcome without its snapshot");
    ASSIGN_OR_RETURN(*snapshot, ReadSealedCopy(fds[0].get(), kMaxSnapshotBytes));
  }
  return std::unique_ptr<BrokerConnection>(new BrokerConnection(std::move(socket)));
}

absl::StatusOr<std::unique_ptr<Transport>> BrokerConnection::OpenSession() {
  sluice::OpenSession open = MakeMessage<sluice::OpenSession>();
  const char* sync = std::getenv("SLUICE_SYNC");
  if (sync != nullptr && sync[0] == '1') open.flags = kOpenSessionSync;
  open.nonce = next_nonce_++;
  RETURN_IF_ERROR(SendMessage(socket_.get(), &open, sizeof(open)));
  while (true) {
    std::vector<UniqueFd> fds;
    ASSIGN_OR_RETURN(const SessionOpened opened,
                     Receive<SessionOpened>(socket_.get(), kSessionTimeoutMs, &fds));
    if (opened.request_id != open.nonce) continue;  // Late: its descriptor is closed with `fds`.
    if (opened.status != 0) {
      return absl::ResourceExhaustedError(
          Refusal("the daemon opens no session", opened.status, opened.message));
    }
    if (fds.size() != 1) return absl::InvalidArgumentError("a session without its channel");
    ASSIGN_OR_RETURN(std::unique_ptr<RingTransport> transport,
                     RingTransport::Connect(std::move(fds[0]), kSessionTimeoutMs));
    return std::unique_ptr<Transport>(std::move(transport));
  }
}

void BrokerConnection::CloseInForkedChild() { socket_.reset(); }

}  // namespace sluice
