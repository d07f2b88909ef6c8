// SPDX-License-Identifier: Apache-2.0
#include "broker/config/policy.h"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/children/worker_users.h"
#include "broker/os/peer_identity.h"
#include "broker/os/process.h"

namespace sluice::broker {
namespace {

// The account's own limit, which the operator gave it by name, or everybody's.
uint64_t LimitOf(uint64_t own, uint64_t of_user) { return own != 0 ? own : of_user; }

// This part of a limit of the daemon's is reserved for accounts that have less than one needs to
// begin with: nobody takes the last one from them. A small daemon reserves none.
constexpr uint64_t kReservedPart = 8;
// The driver's, and one for resources.
constexpr uint64_t kConnectionsToBegin = 2;

// The part of `limit` that an account may use which has `own` already.
uint64_t LeftFor(uint64_t limit, uint64_t to_begin, uint64_t own) {
  return own < to_begin ? limit : limit - limit / kReservedPart;
}

std::string Full(uint64_t limit, uint64_t most, const char* what, const char* key) {
  if (most == limit)
    return absl::StrCat("the daemon has its limit of ", limit, what, " (", key, ")");
  return absl::StrCat("the daemon keeps the last ", limit - most, " of its ", limit, what,
                      " for those who have none (", key, ")");
}

// Of a limit, which may be 0 for none.
uint64_t Times(uint64_t sessions, uint64_t limit) {
  return limit != 0 && sessions > std::numeric_limits<uint64_t>::max() / limit
             ? std::numeric_limits<uint64_t>::max()
             : sessions * limit;
}

const char* KeyOf(uint64_t own, const char* of_listener, const char* of_user) {
  return own != 0 ? of_listener : of_user;
}

}  // namespace

void Policy::Update(const Config& config) {
  thread_.Assert();
  limits_ = config.limits;
  everyone_ = config.access_users.empty();
  allowed_uids_ = UidsOf(config.access_users);
}

std::optional<Refusal> Policy::MayEnter(const Caller& caller) const {
  // A worker's own sessions would be a further tenant's, with limits and workers of its own, and so
  // on without end.
  if (IsTenantUid(caller.uid)) {
    return Refusal{EACCES,
                   absl::StrCat(os::UserName(caller.uid), " is a user that the daemon keeps for ",
                                "its workers: a worker (a kernel in it) is nobody's client")};
  }
  const bool everyone = caller.listener != nullptr ? caller.listener->users.empty() : everyone_;
  const std::set<uid_t>& allowed =
      caller.listener != nullptr ? caller.listener->uids : allowed_uids_;
  // A container's user is let in with whoever made it.
  if (everyone || allowed.contains(caller.uid) || allowed.contains(caller.owner))
    return std::nullopt;
  const std::string where =
      caller.listener != nullptr
          ? absl::StrCat("of the listener of tenant \"", caller.listener->tenant, "\"")
          : "of [access]";
  return Refusal{EACCES, absl::StrCat(os::UserName(caller.uid), " is not in \"users\" ", where,
                                      " in the daemon's configuration")};
}

std::optional<Refusal> Policy::MayConnect(const Caller& caller, const Account& account) const {
  thread_.Assert();
  if (std::optional<Refusal> refusal = MayEnter(caller)) return refusal;
  const uint64_t most =
      LeftFor(limits_.max_connections, kConnectionsToBegin, connections_.CountOf(account.name));
  if (connections_.total() >= most) {
    return Refusal{EBUSY, Full(limits_.max_connections, most, " connections", "max_connections")};
  }
  const uint64_t own = account.limits.max_connections;
  const uint64_t limit = LimitOf(own, limits_.max_connections_per_user);
  if (connections_.CountOf(account.name) < limit) return std::nullopt;
  return Refusal{
      EBUSY,
      absl::StrCat(account.name, " has the limit of ", limit, " connections (",
                   KeyOf(own, "max_connections of its listener", "max_connections_per_user"), ")")};
}

uint64_t Policy::SessionLimitOf(const Account& account) const {
  return std::min(LimitOf(account.limits.max_sessions, limits_.max_sessions_per_user),
                  limits_.max_sessions);
}

void Policy::AddQuotas(const Account& account, std::vector<QuotaUse>* quotas) const {
  thread_.Assert();
  using wire::QuotaKind;
  const uint64_t sessions = SessionLimitOf(account);
  quotas->push_back({QuotaKind::kSessions, sessions_.CountOf(account.name), sessions});
  quotas->push_back(
      {QuotaKind::kConnections, connections_.CountOf(account.name),
       std::min(LimitOf(account.limits.max_connections, limits_.max_connections_per_user),
                limits_.max_connections)});
  // Each worker holds its session to its own; more sessions there are not.
  quotas->push_back({QuotaKind::kObjects, std::nullopt, Times(sessions, limits_.objects)});
  quotas->push_back(
      {QuotaKind::kQueuedCommands, std::nullopt, Times(sessions, limits_.in_flight_commands)});
}

std::optional<Refusal> Policy::MayOpenSession(const Account& account) const {
  thread_.Assert();
  const uint64_t has = sessions_.CountOf(account.name);
  const uint64_t most = LeftFor(limits_.max_sessions, 1, has);
  if (sessions_.total() >= most)
    return Refusal{EMFILE, Full(limits_.max_sessions, most, " sessions", "max_sessions")};
  const uint64_t most_of_network = LeftFor(limits_.max_network_sessions, 1, has);
  if (account.network && network_sessions_.total() >= most_of_network) {
    return Refusal{EMFILE, Full(limits_.max_network_sessions, most_of_network, " network sessions",
                                "max_network_sessions")};
  }
  const uint64_t own = account.limits.max_sessions;
  const uint64_t limit = LimitOf(own, limits_.max_sessions_per_user);
  if (has < limit) return std::nullopt;
  return Refusal{
      EMFILE, absl::StrCat(account.name, " has the limit of ", limit, " sessions (",
                           KeyOf(own, "max_sessions of its tenant", "max_sessions_per_user"), ")")};
}

std::shared_ptr<void> Policy::ConnectionOpened(const Account& account) {
  return connections_.Take(account.name);
}

std::shared_ptr<void> Policy::SessionOpened(const Account& account) {
  std::shared_ptr<void> slot = sessions_.Take(account.name);
  if (!account.network) return slot;
  return std::make_shared<std::pair<std::shared_ptr<void>, std::shared_ptr<void>>>(
      std::move(slot), network_sessions_.Take(account.name));
}

bool RateLimiter::Allow(int64_t now_ms) {
  if (last_ms_ != 0) {
    const double earned = static_cast<double>(now_ms - last_ms_) / 1000.0 * per_second_;
    tokens_ = std::min(burst_, tokens_ + earned);
  }
  last_ms_ = now_ms;
  if (tokens_ < 1.0) {
    ++suppressed_;
    return false;
  }
  tokens_ -= 1.0;
  return true;
}

uint64_t RateLimiter::TakeSuppressed() {
  const uint64_t count = suppressed_;
  suppressed_ = 0;
  return count;
}

}  // namespace sluice::broker
