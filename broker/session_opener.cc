// SPDX-License-Identifier: Apache-2.0
#include "broker/session_opener.h"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "broker/base/log.h"
#include "broker/base/peer_version.h"
#include "broker/os/local_socket.h"
#include "proto/broker_messages.h"
#include "proto/memory_messages.h"
#include "proto/pool_messages.h"
#include "proto/quota_messages.h"
#include "proto/resource_messages.h"

namespace sluice::broker {
namespace {

// Features that a peer may rely on. Each new message or flag adds a name, which never changes
// meaning.
constexpr const char* kFeatures[] = {"sync", wire::kResourcesFeature, wire::kFeatureCloseSession,
                                     wire::kFeatureQuotas};

// Workers on their way: half as many as processors for one account, and at least two, so that a
// driver that waits does not hold up the next one.
uint64_t MostOfAccount() { return std::max<uint64_t>(2, std::thread::hardware_concurrency() / 2); }
uint64_t MostInAll() {
  return std::max<uint64_t>(4, uint64_t{std::thread::hardware_concurrency()} * 2);
}

}  // namespace

SessionOpener::SessionOpener(Policy* policy, Workers* workers, const Probe* probe)
    : policy_(policy), workers_(workers), probe_(probe), starts_(MostOfAccount(), MostInAll()) {}

std::string CommonFeatures(const std::string& peer_features) {
  const std::vector<std::string> offered = absl::StrSplit(peer_features, ',', absl::SkipEmpty());
  std::vector<std::string> common;
  for (const char* feature : kFeatures) {
    if (std::find(offered.begin(), offered.end(), feature) != offered.end()) {
      common.emplace_back(feature);
    }
  }
  return absl::StrJoin(common, ",");
}

absl::Status SessionOpener::SendWelcome(int socket, const std::string& features,
                                        const Account& account) const {
  thread_.Assert();
  auto welcome = wire::MakeMessage<wire::Welcome>();
  welcome.session_limit = static_cast<uint32_t>(policy_->SessionLimitOf(account));
  welcome.snapshot_size = probe_->size();
  wire::SetString(welcome.message, probe_->size() == 0 ? probe_->problem() : "");
  std::string common = CommonFeatures(features);
  if (shares_resources_ && wire::HasFeature(features, wire::kFeatureSharesResources))
    absl::StrAppend(&common, common.empty() ? "" : ",", wire::kFeatureSharesResources);
  if (workers_->MayPool(account) && wire::HasFeature(features, wire::kFeaturePools)) {
    absl::StrAppend(&common, common.empty() ? "" : ",", wire::kFeaturePools);
    if (workers_->MayPoolProcessors())
      absl::StrAppend(&common, ",", wire::kFeaturePoolsOfProcessors);
  }
  if (!VersionIn(features).empty())
    absl::StrAppend(&common, common.empty() ? "" : ",", VersionFeature());
  if (const uint64_t memory = ReportedMemory(limits_, account); memory != 0)
    absl::StrAppend(&common, common.empty() ? "" : ",", wire::MemoryFeature(memory));
  wire::SetString(welcome.features, common);
  const int fd = probe_->fd();
  return os::SendMessage(socket, &welcome, sizeof(welcome), &fd, 1);
}

absl::Status SessionOpener::SendWelcomeRefusal(int socket, const Refusal& refusal) {
  auto welcome = wire::MakeMessage<wire::Welcome>();
  welcome.status = refusal.status;
  wire::SetString(welcome.message, refusal.message);
  return os::SendMessage(socket, &welcome, sizeof(welcome));
}

absl::Status SessionOpener::SendSessionRefusal(int socket, uint64_t request_id,
                                               const Refusal& refusal) {
  auto answer = wire::MakeMessage<wire::SessionOpened>();
  answer.request_id = request_id;
  answer.status = refusal.status;
  wire::SetString(answer.message, refusal.message);
  return os::SendMessage(socket, &answer, sizeof(answer));
}

absl::Status SessionOpener::SendSession(int socket, uint64_t request_id,
                                        const SessionRequest& request) {
  thread_.Assert();
  absl::Status sent;
  const auto now = std::make_shared<bool>(true);
  const bool asked = starts_.Ask(
      request.tenant.account.name, request.owner, [this, socket, request_id, request, now, &sent] {
        uint64_t session = 0;
        const absl::Status told = Open(socket, request_id, request, &session);
        if (*now) sent = told;  // Later, the peer's socket shows that it cannot be reached.
        return session;
      });
  *now = false;
  if (asked) return sent;
  return SendSessionRefusal(
      socket, request_id,
      {EAGAIN, absl::StrCat(request.tenant.account.name, " has ", SessionStarts::kMostWaiting,
                            " sessions that wait for their start")});
}

absl::Status SessionOpener::Open(int socket, uint64_t request_id, const SessionRequest& request,
                                 uint64_t* session_id) {
  if (draining_) {
    return SendSessionRefusal(socket, request_id,
                              {ESHUTDOWN, "the daemon is about to stop and takes no new sessions"});
  }
  if (const std::optional<Refusal> refusal = policy_->MayOpenSession(request.tenant.account)) {
    if (log_limiter_.Allow(MonotonicMs())) {
      Log(LogLevel::kWarning, "broker", "session refused",
          {{"identity", request.tenant.user},
           {"account", request.tenant.account.name},
           {"reason", refusal->message},
           {"suppressed", log_limiter_.TakeSuppressed()}});
    }
    return SendSessionRefusal(socket, request_id, *refusal);
  }
  absl::StatusOr<OpenedSession> session = workers_->Open(request);
  if (!session.ok()) {
    if (log_limiter_.Allow(MonotonicMs())) {
      Log(LogLevel::kError, "broker", "cannot start a worker",
          {{"identity", request.tenant.user},
           {"reason", session.status().ToString()},
           {"suppressed", log_limiter_.TakeSuppressed()}});
    }
    return SendSessionRefusal(
        socket, request_id,
        {EIO, absl::StrCat("the daemon could not start a worker: ", session.status().message())});
  }
  *session_id = session->id;
  auto answer = wire::MakeMessage<wire::SessionOpened>();
  answer.request_id = request_id;
  answer.session_id = session->id;
  answer.max_memory_bytes = MemoryLimit(limits_, request.tenant.account);
  answer.max_objects = limits_.objects;
  answer.max_in_flight_commands = limits_.in_flight_commands;
  answer.max_program_bytes = limits_.program_bytes;
  const int fd = session->client_end.get();
  // Our copy of the client's end closes when this returns: then the client alone keeps the session.
  return os::SendMessage(socket, &answer, sizeof(answer), &fd, 1);
}

}  // namespace sluice::broker
