// SPDX-License-Identifier: Apache-2.0
#include "broker/config/policy.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/children/worker_users.h"
#include "broker/os/peer_identity.h"
#include "broker/os/process.h"

namespace sluice::broker {
Identity Identity::ForUid(uid_t uid) { return {os::UserName(uid), false}; }

Identity Identity::ForNetworkPeer(const std::string& peer) {
  return {absl::StrCat("net:", peer), true};
}

void Policy::Update(const Config& config) {
  thread_.Assert();
  limits_ = config.limits;
  everyone_ = config.access_users.empty();
  allowed_uids_.clear();
  for (const std::string& user : config.access_users) {
    if (const std::optional<uid_t> uid = os::ParseUser(user)) {
      allowed_uids_.insert(*uid);
    } else if (const auto identity = os::LookUpUser(user); identity.ok()) {
      allowed_uids_.insert(identity->uid);
    }
  }
}

std::optional<Refusal> Policy::MayConnect(uid_t uid) const {
  thread_.Assert();
  // Its sessions would be an identity's of their own, with limits and workers of their own, and so
  // on without end.
  if (IsTenantUid(uid)) {
    return Refusal{EACCES,
                   absl::StrCat(os::UserName(uid), " is a user that the daemon keeps for its ",
                                "workers: a worker (a kernel in it) is nobody's client")};
  }
  if (!everyone_ && !allowed_uids_.contains(uid)) {
    return Refusal{EACCES,
                   absl::StrCat(os::UserName(uid), " is not in \"users\" of [access] in the ",
                                "daemon's configuration")};
  }
  if (connections_.total() >= limits_.max_connections) {
    return Refusal{EBUSY, absl::StrCat("the daemon has its limit of ", limits_.max_connections,
                                       " connections (max_connections)")};
  }
  if (connections_.CountOf(uid) >= limits_.max_connections_per_user) {
    return Refusal{EBUSY, absl::StrCat(os::UserName(uid), " has the limit of ",
                                       limits_.max_connections_per_user,
                                       " connections (max_connections_per_user)")};
  }
  return std::nullopt;
}

std::optional<Refusal> Policy::MayOpenSession(const Identity& identity) const {
  thread_.Assert();
  if (sessions_.total() >= limits_.max_sessions) {
    return Refusal{EMFILE, absl::StrCat("the daemon has its limit of ", limits_.max_sessions,
                                        " sessions (max_sessions)")};
  }
  if (identity.network && network_sessions_.total() >= limits_.max_network_sessions) {
    return Refusal{EMFILE,
                   absl::StrCat("the daemon has its limit of ", limits_.max_network_sessions,
                                " network sessions (max_network_sessions)")};
  }
  if (sessions_.CountOf(identity.name) >= limits_.max_sessions_per_user) {
    return Refusal{EMFILE,
                   absl::StrCat(identity.name, " has the limit of ", limits_.max_sessions_per_user,
                                " sessions (max_sessions_per_user)")};
  }
  return std::nullopt;
}

std::shared_ptr<void> Policy::ConnectionOpened(uid_t uid) { return connections_.Take(uid); }

std::shared_ptr<void> Policy::SessionOpened(const Identity& identity) {
  std::shared_ptr<void> slot = sessions_.Take(identity.name);
  if (!identity.network) return slot;
  return std::make_shared<std::pair<std::shared_ptr<void>, std::shared_ptr<void>>>(
      std::move(slot), network_sessions_.Take(identity.name));
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
