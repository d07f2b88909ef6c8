// SPDX-License-Identifier: Apache-2.0
#include "broker/client_connections.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "broker/base/log.h"
#include "broker/base/peer_version.h"
#include "broker/os/close_elsewhere.h"
#include "broker/os/local_socket.h"
#include "broker/quotas.h"
#include "proto/quota_messages.h"
#include "proto/resource_messages.h"

namespace sluice::broker {
namespace {

constexpr int64_t kHelloTimeoutMs = 5000;
constexpr int64_t kAcceptPauseMs = 100;
constexpr size_t kMaxRefusedConnections = 64;
constexpr int kAcceptsPerWakeUp = 16;
constexpr int kClientMessagesPerWakeUp = 8;

}  // namespace

ClientConnections::~ClientConnections() { Stop(); }

ClientConnections::DoorId ClientConnections::Listen(
    os::UniqueFd socket, std::shared_ptr<const ListenerConfig> listener) {
  thread_.Assert();
  os::RefuseDescriptors(socket.get());
  const DoorId id = next_id_++;
  Door& door = doors_[id];
  door.socket = std::move(socket);
  door.listener = std::move(listener);
  door.watch = loop_->Watch(door.socket.get(), [this, id] { OnAcceptable(id); });
  return id;
}

void ClientConnections::Update(DoorId door, std::shared_ptr<const ListenerConfig> listener) {
  thread_.Assert();
  doors_[door].listener = std::move(listener);
}

void ClientConnections::Close(DoorId id, bool end_connections) {
  thread_.Assert();
  const auto found = doors_.find(id);
  if (found == doors_.end()) return;
  loop_->Unwatch(&found->second.watch);
  loop_->CancelTimer(&found->second.pause_timer);
  os::CloseElsewhere(std::move(found->second.socket));
  doors_.erase(found);
  if (!end_connections) return;
  std::vector<uint64_t> ended;
  for (const auto& [connection_id, connection] : connections_) {
    if (connection->door == id) ended.push_back(connection_id);
  }
  for (const uint64_t connection_id : ended) CloseConnection(connection_id, "");
}

size_t ClientConnections::ConnectionsBy(DoorId door) const {
  return static_cast<size_t>(
      std::count_if(connections_.begin(), connections_.end(),
                    [door](const auto& entry) { return entry.second->door == door; }));
}

void ClientConnections::Stop() {
  thread_.Assert();
  while (!doors_.empty()) Close(doors_.begin()->first, /*end_connections=*/false);
  while (!connections_.empty()) CloseConnection(connections_.begin()->first, "");
}

void ClientConnections::OnAcceptable(DoorId id) {
  for (int i = 0; i < kAcceptsPerWakeUp; ++i) {
    absl::StatusOr<os::UniqueFd> socket = os::AcceptLocal(doors_[id].socket.get());
    if (absl::IsUnavailable(socket.status())) return;
    if (!socket.ok()) {
      // Out of descriptors, most likely. The listener stays readable: without a pause this would
      // spin.
      Log(LogLevel::kError, "broker", "cannot accept a connection",
          {{"reason", socket.status().ToString()}});
      return PauseAccepting(id);
    }
    Adopt(id, *std::move(socket));
  }
}

void ClientConnections::PauseAccepting(DoorId id) {
  loop_->Unwatch(&doors_[id].watch);
  doors_[id].pause_timer = loop_->AddTimer(kAcceptPauseMs, [this, id] {
    Door& door = doors_[id];
    door.pause_timer = 0;
    door.watch = loop_->Watch(door.socket.get(), [this, id] { OnAcceptable(id); });
  });
}

void ClientConnections::Adopt(DoorId door, os::UniqueFd socket) {
  absl::StatusOr<os::PeerIdentity> peer = os::GetPeerIdentity(socket.get());
  if (!peer.ok()) return os::CloseElsewhere(std::move(socket));  // It is gone already.
  auto connection = std::make_unique<Connection>();
  connection->id = next_id_++;
  connection->door = door;
  connection->peer = *std::move(peer);
  std::optional<Refusal> refusal = Judge(doors_[door], connection.get());
  if (refusal.has_value() &&
      (refusal->status == ESRCH || refused_.total() >= kMaxRefusedConnections)) {
    return os::CloseElsewhere(std::move(socket));
  }
  connection->socket = std::move(socket);
  connection->slot = refusal.has_value() ? refused_.Take(connection->peer.uid)
                                         : policy_->ConnectionOpened(connection->tenant.account);
  connection->refusal = std::move(refusal);
  const uint64_t id = connection->id;
  connection->hello_timer = loop_->AddTimer(kHelloTimeoutMs, [this, id] {
    connections_[id]->hello_timer = 0;
    CloseConnection(id, "no Hello within 5 s of connecting");
  });
  if (connection->peer.pidfd.valid()) {
    // A fork of the client keeps the socket open; this notices that the client itself is gone.
    connection->death_watch =
        loop_->Watch(connection->peer.pidfd.get(), [this, id] { CloseConnection(id, ""); });
  }
  WatchSocket(connection.get());
  connections_[id] = std::move(connection);
}

// Fills in the connection's tenant, too. ESRCH: the client is gone already.
std::optional<Refusal> ClientConnections::Judge(const Door& door, Connection* connection) {
  const os::PeerIdentity& peer = connection->peer;
  if (std::optional<Refusal> refusal = RefuseOwnProcess(peer)) return refusal;
  absl::StatusOr<TenantFinder::Found> found = finder_.Find(peer, door.listener.get());
  if (!found.ok()) {
    return Refusal{absl::IsUnavailable(found.status()) ? ESRCH : EACCES,
                   std::string(found.status().message())};
  }
  connection->tenant = std::move(found->tenant);
  connection->container = std::move(found->container);
  return policy_->MayConnect({peer.uid, found->owner, door.listener.get()},
                             connection->tenant.account);
}

std::optional<Refusal> ClientConnections::RefuseOwnProcess(const os::PeerIdentity& peer) const {
  // Matters where workers run as their clients' user, or all as the same. A worker's pid is nobody
  // else's while it is not reaped; processes that it starts cannot leave its session.
  if (workers_->Includes(peer.pid) || workers_->Includes(peer.session_leader)) {
    return Refusal{
        EACCES, absl::StrCat("process ", peer.pid, " is a worker of this daemon, or was started ",
                             "by one: a worker (a kernel in it) is nobody's client")};
  }
  // Whoever has taken one of these over would have another identity's limits.
  if (is_helper_(peer.pid) || is_helper_(peer.session_leader)) {
    return Refusal{EACCES,
                   absl::StrCat("process ", peer.pid, " is a helper of this daemon, or was ",
                                "started by one: a helper is nobody's client")};
  }
  return std::nullopt;
}

void ClientConnections::WatchSocket(Connection* connection) {
  const uint64_t id = connection->id;
  connection->socket_watch = loop_->Watch(connection->socket.get(), [this, id] { OnReadable(id); });
}

void ClientConnections::OnReadable(uint64_t id) {
  for (int i = 0; i < kClientMessagesPerWakeUp; ++i) {
    const auto found = connections_.find(id);
    if (found == connections_.end() || found->second->socket_watch == 0) return;
    Connection* connection = found->second.get();
    char packet[wire::kMaxBrokerMessageBytes];
    const absl::StatusOr<size_t> size =
        os::ReceiveMessage(connection->socket.get(), packet, sizeof(packet), nullptr, 0);
    if (absl::IsUnavailable(size.status())) return;
    if (!size.ok()) return CloseConnection(id, std::string(size.status().message()));
    if (*size == 0) return CloseConnection(id, "");
    std::string why;
    if (!HandleMessage(connection, packet, *size, &why)) return CloseConnection(id, why);
  }
}

bool ClientConnections::HandleMessage(Connection* connection, const void* packet, size_t size,
                                      std::string* why) {
  if (connection->state == State::kNew) {
    wire::Hello hello;
    if (!wire::ParseMessage(packet, size, &hello) || !wire::IsTerminated(hello.features) ||
        !wire::IsTerminated(hello.process_name)) {
      *why = absl::StrCat("expected a Hello, got ", size, " bytes that are none");
      if (wire::PeekMessageType(packet, size) == static_cast<uint16_t>(wire::MessageType::kHello)) {
        const std::string text = absl::StrCat("its greeting is none that this daemon knows; ",
                                              VersionAdvice("daemon", "client", ""));
        SessionOpener::SendWelcomeRefusal(connection->socket.get(), {EPROTO, text}).IgnoreError();
      }
      return false;
    }
    return HandleHello(connection, hello, why);
  }
  wire::OpenResources resources;
  if (wire::ParseMessage(packet, size, &resources) && resources.reserved == 0) {
    return HandleOpenResources(connection, why);
  }
  if (wire::AskQuotas ask; wire::ParseMessage(packet, size, &ask)) {
    return HandleAskQuotas(connection, why);
  }
  if (wire::CloseSession close; wire::ParseMessage(packet, size, &close)) {
    workers_->EndOneOwnedBy(connection->id, close.session_id, "its client closed it");
    return true;
  }
  wire::OpenSession open;
  if (!wire::ParseMessage(packet, size, &open)) {
    *why = absl::StrCat("expected an OpenSession, got ", size, " bytes that are none");
    return false;
  }
  return HandleOpenSession(connection, open, why);
}

bool ClientConnections::HandleAskQuotas(Connection* connection, std::string* why) {
  if (!wire::HasFeature(connection->features, wire::kFeatureQuotas)) {
    *why = "AskQuotas without the feature in its Hello";
    return false;
  }
  const auto door = doors_.find(connection->door);
  const Account account = door != doors_.end() && door->second.listener != nullptr
                              ? AccountOf(*door->second.listener)
                              : connection->tenant.account;
  const AccountQuotas all =
      QuotasOf(account, {connection->tenant.domain.name}, *policy_, *workers_, *resources_);
  auto told = wire::MakeMessage<wire::Quotas>();
  wire::SetString(told.account, all.account);
  for (const QuotaUse& use : all.quotas) {
    if (told.count == wire::kMostQuotas) break;
    told.quotas[told.count++] = {static_cast<uint32_t>(use.kind), use.used.has_value() ? 1u : 0u,
                                 use.used.value_or(0), use.limit};
  }
  const absl::Status sent = os::SendMessage(connection->socket.get(), &told, sizeof(told));
  if (!sent.ok()) *why = std::string(sent.message());
  return sent.ok();
}

std::vector<Tenant> ClientConnections::Tenants() const {
  std::vector<Tenant> tenants;
  for (const auto& [id, connection] : connections_) {
    if (!connection->refusal.has_value()) tenants.push_back(connection->tenant);
  }
  return tenants;
}

bool ClientConnections::HandleOpenResources(Connection* connection, std::string* why) {
  const std::string common = CommonFeatures(connection->features);
  if (!absl::StrContains(absl::StrCat(",", common, ","),
                         absl::StrCat(",", wire::kResourcesFeature, ","))) {
    *why = "OpenResources without the feature in its Hello";
    return false;
  }
  ResourceClient client;
  client.owner = connection->id;
  client.uid = connection->peer.uid;
  // Its tenant may have been given other limits since.
  const auto door = doors_.find(connection->door);
  const AccountLimits limits = door != doors_.end() && door->second.listener != nullptr
                                   ? door->second.listener->limits
                                   : connection->tenant.account.limits;
  client.account = connection->tenant.account.name;
  client.quota = {limits.max_resources, limits.max_resource_bytes};
  client.process_name = connection->process_name;
  const absl::Status sent = resources_->SendConnection(connection->socket.get(), client);
  if (!sent.ok()) *why = std::string(sent.message());
  return sent.ok();
}

bool ClientConnections::HandleOpenSession(Connection* connection, const wire::OpenSession& open,
                                          std::string* why) {
  if ((open.flags & ~wire::kOpenSessionKnownFlags) != 0 || open.reserved != 0) {
    *why = absl::StrCat("unknown flags 0x", absl::Hex(open.flags), " in OpenSession");
    const std::string text = absl::StrCat(
        *why, "; ", VersionAdvice("daemon", "client", VersionIn(connection->features)));
    SessionOpener::SendSessionRefusal(connection->socket.get(), open.nonce, {EPROTO, text})
        .IgnoreError();
    return false;
  }
  const auto door = doors_.find(connection->door);
  if (door == doors_.end()) {
    const absl::Status told = SessionOpener::SendSessionRefusal(
        connection->socket.get(), open.nonce,
        {ESHUTDOWN,
         "the listener that this program came by was removed: it opens no new sessions"});
    if (!told.ok()) *why = std::string(told.message());
    return told.ok();
  }
  // Its tenant may have been given other limits since.
  if (door->second.listener != nullptr)
    connection->tenant.account = AccountOf(*door->second.listener);
  SessionRequest request;
  request.owner = connection->id;
  request.tenant = connection->tenant;
  request.process_name = connection->process_name;
  request.client_pid = connection->peer.pid;
  request.flags = open.flags;
  const absl::Status sent = opener_->SendSession(connection->socket.get(), open.nonce, request);
  if (!sent.ok()) *why = std::string(sent.message());
  return sent.ok();
}

bool ClientConnections::HandleHello(Connection* connection, const wire::Hello& hello,
                                    std::string* why) {
  loop_->CancelTimer(&connection->hello_timer);
  connection->features = hello.features;
  connection->process_name = hello.process_name;
  if (connection->refusal.has_value()) {
    *why = absl::StrCat("refused: ", connection->refusal->message);
    SessionOpener::SendWelcomeRefusal(connection->socket.get(), *connection->refusal).IgnoreError();
    return false;
  }
  Log(LogLevel::kDebug, "broker", "client connected",
      {{"user", os::UserName(connection->peer.uid)},
       {"pid", connection->peer.pid},
       {"process", connection->process_name}});
  if (opener_->ready()) return SendWelcomeTo(connection, why);
  connection->state = State::kWaiting;
  loop_->Unwatch(&connection->socket_watch);
  return true;
}

bool ClientConnections::SendWelcomeTo(Connection* connection, std::string* why) {
  connection->state = State::kWelcome;
  const absl::Status sent = opener_->SendWelcome(connection->socket.get(), connection->features,
                                                 connection->tenant.account);
  if (!sent.ok()) *why = std::string(sent.message());
  return sent.ok();
}

void ClientConnections::SnapshotReady() {
  thread_.Assert();
  std::vector<uint64_t> waiting;
  for (const auto& [id, connection] : connections_) {
    if (connection->state == State::kWaiting) waiting.push_back(id);
  }
  for (const uint64_t id : waiting) {
    Connection* connection = connections_[id].get();
    std::string why;
    if (SendWelcomeTo(connection, &why)) {
      WatchSocket(connection);
    } else {
      CloseConnection(id, why);
    }
  }
}

void ClientConnections::CloseConnection(uint64_t id, const std::string& violation) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  const std::unique_ptr<Connection> connection = std::move(found->second);
  connections_.erase(found);
  loop_->Unwatch(&connection->socket_watch);
  loop_->Unwatch(&connection->death_watch);
  loop_->CancelTimer(&connection->hello_timer);
  os::CloseElsewhere(std::move(connection->socket), std::move(connection->slot));
  if (!violation.empty() && log_limiter_.Allow(MonotonicMs())) {
    Log(LogLevel::kWarning, "broker", "connection closed",
        {{"user", os::UserName(connection->peer.uid)},
         {"pid", connection->peer.pid},
         {"reason", violation},
         {"suppressed", log_limiter_.TakeSuppressed()}});
  }
  opener_->Forget(id);
  workers_->EndOwnedBy(id, "its client is gone");
  resources_->EndOwnedBy(id);
}

}  // namespace sluice::broker
