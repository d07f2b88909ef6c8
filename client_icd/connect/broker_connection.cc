// SPDX-License-Identifier: Apache-2.0
#include "client_icd/connect/broker_connection.h"

#include <errno.h>
#include <string.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "broker/os/local_socket.h"
#include "broker/os/shared_memory.h"
#include "broker/os/this_process.h"
#include "client_icd/connect/broker_greeting.h"
#include "client_icd/connect/sync_mode.h"
#include "client_icd/session/ring_transport.h"
#include "proto/status_macros.h"

namespace sluice::client {
namespace {

constexpr int kSessionTimeoutMs = 30'000;
constexpr int kCloseTimeoutMs = 1'000;
constexpr size_t kMaxSnapshotBytes = size_t{64} << 20;

}  // namespace

absl::StatusOr<std::unique_ptr<BrokerConnection>> BrokerConnection::Connect(const std::string& path,
                                                                            std::string* snapshot,
                                                                            std::string* problem) {
  std::vector<os::UniqueFd> fds;
  wire::Welcome welcome;
  const std::string wanted = absl::StrCat(wire::kFeatureCloseSession, ",",
                                          wire::kFeatureSharesResources, ",", wire::kFeaturePools);
  ASSIGN_OR_RETURN(os::UniqueFd socket, GreetBroker(path, wanted.c_str(), &welcome, &fds));
  snapshot->clear();
  if (welcome.snapshot_size != 0) {
    if (fds.size() != 1) return absl::InvalidArgumentError("a welcome without its snapshot");
    ASSIGN_OR_RETURN(*snapshot, os::ReadSealedCopy(fds[0].get(), kMaxSnapshotBytes));
  }
  if (snapshot->empty() && problem != nullptr) *problem = welcome.message;
  const std::string_view features = wire::IsTerminated(welcome.features) ? welcome.features : "";
  return std::unique_ptr<BrokerConnection>(new BrokerConnection(std::move(socket), features));
}

absl::StatusOr<OpenedTransport> BrokerConnection::OpenSession(Sharing sharing) {
  wire::OpenSession open = wire::MakeMessage<wire::OpenSession>();
  if (WantsSync()) open.flags = wire::kOpenSessionSync;
  if (has_pools_) {
    open.flags |= os::EnvironmentVariable("SLUICE_POOL") == "off" ? wire::kOpenSessionRefusesPool
                  : sharing == Sharing::kMay                      ? wire::kOpenSessionMayPool
                                                                  : wire::kOpenSessionNeedsWorker;
  }
  open.nonce = next_nonce_++;
  RETURN_IF_ERROR(os::SendMessage(socket_.get(), &open, sizeof(open)));
  const AnswerTime time(kSessionTimeoutMs);
  while (true) {
    std::vector<os::UniqueFd> fds;
    ASSIGN_OR_RETURN(const wire::SessionOpened opened,
                     ReceiveFromBroker<wire::SessionOpened>(socket_.get(), time, &fds, 1));
    if (opened.request_id != open.nonce) continue;  // Late: its descriptor is closed with `fds`.
    if (opened.status != 0) {
      const std::string refusal =
          BrokerRefusal("the daemon opens no session", opened.status, opened.message);
      // As the gateway tells a client on the network: only a limit is CL_OUT_OF_RESOURCES.
      const bool over_a_limit = opened.status == EMFILE || opened.status == EBUSY;
      return over_a_limit ? absl::ResourceExhaustedError(refusal)
                          : absl::FailedPreconditionError(refusal);
    }
    if (fds.size() != 1) return absl::InvalidArgumentError("a session without its channel");
    ASSIGN_OR_RETURN(std::unique_ptr<RingTransport> transport,
                     RingTransport::Connect(std::move(fds[0]), kSessionTimeoutMs,
                                            opened.max_in_flight_commands));
    return OpenedTransport{std::move(transport), opened.session_id};
  }
}

void BrokerConnection::CloseSession(uint64_t id) {
  // The worker's end of file must do for a daemon that does not know it, or does not listen.
  if (!closes_sessions_ || !os::WaitWritable(socket_.get(), kCloseTimeoutMs).ok()) return;
  wire::CloseSession close = wire::MakeMessage<wire::CloseSession>();
  close.session_id = id;
  os::SendMessage(socket_.get(), &close, sizeof(close)).IgnoreError();
}

void BrokerConnection::CloseInForkedChild() { socket_.Reset(); }

}  // namespace sluice::client
