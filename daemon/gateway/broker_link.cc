// SPDX-License-Identifier: Apache-2.0
#include "daemon/gateway/broker_link.h"

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "broker/base/log.h"
#include "broker/os/local_socket.h"
#include "broker/os/shared_memory.h"
#include "broker/os/threads.h"
#include "proto/gateway_messages.h"
#include "proto/memory_messages.h"
#include "proto/status_macros.h"
#include "proto/told_memory.h"

namespace sluice::gateway {
namespace {

constexpr size_t kMaxSnapshotBytes = 64 << 20;
constexpr uint64_t kBrokerKey = 1;  // Of the poller; sessions count up from the next.

// The broker's errno, as a client on the network is told it.
absl::Status RefusalStatus(const wire::SessionOpened& opened) {
  const std::string message =
      opened.message[0] != '\0' ? opened.message : std::strerror(opened.status);
  switch (opened.status) {
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(message);
    case ESHUTDOWN:
      return absl::UnavailableError(message);
    case EIO:
      return absl::InternalError(message);
    default:
      return absl::ResourceExhaustedError(message);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<BrokerLink>> BrokerLink::Connect(os::UniqueFd socket,
                                                                absl::Duration timeout) {
  auto hello = wire::MakeMessage<wire::GatewayHello>();
  wire::SetString(hello.features,
                  absl::StrCat("sync,", wire::kFeatureTerminate, ",", wire::kFeatureGatewayFiles));
  RETURN_IF_ERROR(os::SendMessage(socket.get(), &hello, sizeof(hello)));
  RETURN_IF_ERROR(
      os::WaitReadable(socket.get(), static_cast<int>(absl::ToInt64Milliseconds(timeout))));
  char packet[wire::kMaxBrokerMessageBytes];
  std::vector<os::UniqueFd> fds;
  ASSIGN_OR_RETURN(const size_t size,
                   os::ReceiveMessage(socket.get(), packet, sizeof(packet), &fds, 1));
  if (size == 0) return absl::AbortedError("the broker has closed the connection");
  wire::Welcome welcome;
  if (!wire::ParseMessage(packet, size, &welcome) || !wire::IsTerminated(welcome.message)) {
    return absl::InvalidArgumentError("the broker's first message is no welcome");
  }
  if (welcome.status != 0) return absl::PermissionDeniedError(welcome.message);
  ASSIGN_OR_RETURN(Snapshot snapshot, ReadSnapshot(welcome, fds));
  return std::unique_ptr<BrokerLink>(new BrokerLink(std::move(socket), std::move(snapshot)));
}

absl::StatusOr<BrokerLink::Snapshot> BrokerLink::ReadSnapshot(const wire::Welcome& welcome,
                                                              std::vector<os::UniqueFd>& fds) {
  Snapshot snapshot{"", welcome.message};
  if (welcome.snapshot_size == 0) return snapshot;
  if (fds.size() != 1) return absl::InvalidArgumentError("a welcome without its snapshot");
  ASSIGN_OR_RETURN(snapshot.bytes, os::ReadSealedCopy(fds[0].get(), kMaxSnapshotBytes));
  const uint64_t memory =
      wire::IsTerminated(welcome.features) ? wire::MemoryIn(welcome.features) : 0;
  v1::PlatformSnapshot parsed;
  // Bytes that are no snapshot are passed on: the client refuses them.
  if (memory != 0 && parsed.ParseFromString(snapshot.bytes)) {
    wire::NarrowMemory(memory, &parsed);
    snapshot.bytes = parsed.SerializeAsString();
  }
  return snapshot;
}

absl::Status BrokerLink::Start(
    std::function<void(BrokerEnd)> on_end,
    std::function<void(uint32_t files, std::vector<os::UniqueFd>)> on_files) {
  on_end_ = std::move(on_end);
  on_files_ = std::move(on_files);
  ASSIGN_OR_RETURN(poller_, os::Poller::Create());
  RETURN_IF_ERROR(poller_->Add(kBrokerKey, socket_.get(), os::Poller::Interest::kReadable));
  os::StartDetached([this] { Run(); });
  os::StartDetached([this] { RunSender(); });
  return absl::OkStatus();
}

// The poller is its thread's alone: that one adds, and says how it went.
absl::Status BrokerLink::Watch(std::shared_ptr<Watched> watched) {
  NewWatch watch;
  watch.watched = std::move(watched);
  absl::MutexLock lock(&mu_);
  new_watches_.push_back(&watch);
  poller_->Wake();
  while (!watch.done) answered_.Wait(&mu_);
  return watch.status;
}

void BrokerLink::AddNewWatches() {
  absl::MutexLock lock(&mu_);
  for (NewWatch* watch : std::exchange(new_watches_, {})) {
    const uint64_t key = next_watch_++;
    watch->status = poller_->Add(key, watch->watched->fd(), os::Poller::Interest::kReadable);
    if (watch->status.ok()) watched_.emplace(key, std::move(watch->watched));
    watch->done = true;
    answered_.SignalAll();
  }
}

void BrokerLink::Run() {
  std::vector<uint64_t> ready;
  while (true) {
    poller_->Wait(-1, &ready);
    for (const uint64_t key : ready) {
      if (key == kBrokerKey) {
        if (OnBrokerReadable()) continue;
        poller_->Remove(key, socket_.get());
        OnBrokerGone();
        continue;
      }
      const auto found = watched_.find(key);
      if (found == watched_.end() || found->second->OnReadable()) continue;
      poller_->Remove(key, found->second->fd());
      watched_.erase(found);
    }
    AddNewWatches();
  }
}

void BrokerLink::RunSender() {
  Outgoing next;
  do {
    absl::MutexLock lock(&mu_);
    while (outgoing_.empty()) outgoing_added_.Wait(&mu_);
    next = std::move(outgoing_.front());
    outgoing_.pop_front();
  } while (os::SendMessage(socket_.get(), next.bytes.data(), next.bytes.size()).ok());
}

bool BrokerLink::OnBrokerReadable() {
  char packet[wire::kMaxBrokerMessageBytes];
  std::vector<os::UniqueFd> fds;
  const absl::StatusOr<size_t> size =
      os::ReceiveMessage(socket_.get(), packet, sizeof(packet), &fds, wire::kMostGatewayFiles);
  if (!size.ok()) return false;
  wire::Welcome welcome;
  if (wire::ParseMessage(packet, *size, &welcome)) {
    if (!wire::IsTerminated(welcome.message)) return false;
    absl::StatusOr<Snapshot> fresh = ReadSnapshot(welcome, fds);
    if (!fresh.ok()) return false;
    absl::MutexLock lock(&mu_);
    snapshot_ = *std::move(fresh);
    return true;
  }
  wire::GatewayFiles files;
  if (wire::ParseMessage(packet, *size, &files)) {
    on_files_(files.files, std::move(fds));
    return true;
  }
  wire::Terminate terminate;
  if (wire::ParseMessage(packet, *size, &terminate)) {
    if (!wire::IsTerminated(terminate.reason)) return false;
    on_end_(BrokerEnd::kToldToEnd);
    return true;
  }
  wire::SessionOpened opened;
  if (!wire::ParseMessage(packet, *size, &opened) || !wire::IsTerminated(opened.message))
    return false;
  absl::MutexLock lock(&mu_);
  const auto it = requests_.find(opened.request_id);
  if (it == requests_.end())
    return true;  // Nobody waits any more: the channel closes, and with it the worker.
  Request& request = *it->second;
  if (opened.status != 0) {
    request.result = RefusalStatus(opened);
  } else if (fds.size() != 1) {
    request.result = absl::InternalError("the broker opened a session without its channel");
  } else {
    request.result = Session{opened.session_id, std::move(fds[0]), opened.max_in_flight_commands};
  }
  request.done = true;
  answered_.SignalAll();
  return true;
}

void BrokerLink::OnBrokerGone() {
  {
    absl::MutexLock lock(&mu_);
    gone_ = true;
    answered_.SignalAll();
  }
  on_end_(BrokerEnd::kGone);
}

absl::StatusOr<BrokerLink::Session> BrokerLink::OpenSession(
    uint32_t flags, const std::string& peer, const std::string& process_name,
    absl::Duration timeout, const std::optional<wire::TokenTerms>& terms) {
  const auto fill = [&](auto* open) {
    open->flags = flags;
    wire::SetString(open->peer, peer);
    wire::SetString(open->process_name, process_name);
  };
  auto open = wire::MakeMessage<wire::GatewayOpen>();
  auto on_terms = wire::MakeMessage<wire::GatewayOpenTenant>();
  fill(&open);
  fill(&on_terms);
  if (terms.has_value()) {
    on_terms.share = terms->share;
    on_terms.max_sessions = terms->max_sessions;
    on_terms.memory_bytes = terms->memory_bytes;
  }
  Request request;
  const absl::Time deadline = absl::Now() + timeout;
  absl::MutexLock lock(&mu_);
  open.request_id = on_terms.request_id = next_request_++;
  if (gone_) {
    return absl::UnavailableError(
        "the daemon is stopping or starting again; try again in a moment");
  }
  if (terms.has_value()) {
    SendLocked(open.request_id, on_terms);
  } else {
    SendLocked(open.request_id, open);
  }
  requests_.emplace(open.request_id, &request);
  bool late = false;
  while (!request.done && !gone_ && !late) late = answered_.WaitWithDeadline(&mu_, deadline);
  requests_.erase(open.request_id);
  std::erase_if(outgoing_, [&](const Outgoing& one) { return one.request_id == open.request_id; });
  if (request.done) return std::move(request.result);
  return absl::UnavailableError(late ? "the daemon did not answer in time" : "the daemon is gone");
}

void BrokerLink::CloseSession(uint64_t id) {
  auto close = wire::MakeMessage<wire::CloseSession>();
  close.session_id = id;
  absl::MutexLock lock(&mu_);
  if (!gone_) SendLocked(0, close);
}

}  // namespace sluice::gateway
