// SPDX-License-Identifier: Apache-2.0
//
// The rules for connections, and for the number of sessions. Accounts (tenants/tenant.h) come from
// the kernel or from the gateway's authentication of a network client, never from a client's
// message. The broker itself holds what is counted here: a worker cannot talk its way past it.
//
// Owner: the Broker. Loop thread only.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "broker/config/config.h"
#include "broker/os/thread_checker.h"
#include "broker/os/types.h"
#include "broker/quotas.h"
#include "broker/slots.h"
#include "broker/tenants/tenant.h"

namespace sluice::broker {

struct Refusal {
  int status;           // An errno value, for Welcome and SessionOpened.
  std::string message;  // For the person at the client.
};

// A local client, before it may do anything.
struct Caller {
  uid_t uid = static_cast<uid_t>(-1);
  uid_t owner = static_cast<uid_t>(-1);      // The user who answers for it (PeerContainer::owner).
  const ListenerConfig* listener = nullptr;  // Null: the default socket.
};

class Policy {
 public:
  explicit Policy(const Config& config) { Update(config); }

  // New limits hold for what is asked from now on; nothing that runs is ended.
  void Update(const Config& config);

  // Return nothing if it is allowed.
  std::optional<Refusal> MayConnect(const Caller& caller, const Account& account) const;
  std::optional<Refusal> MayOpenSession(const Account& account) const;
  // How many sessions an account may have at once.
  uint64_t SessionLimitOf(const Account& account) const;

  void AddQuotas(const Account& account, std::vector<QuotaUse>* quotas) const;

  // It counts as long as the slot is held.
  [[nodiscard]] std::shared_ptr<void> ConnectionOpened(const Account& account);
  [[nodiscard]] std::shared_ptr<void> SessionOpened(const Account& account);

 private:
  std::optional<Refusal> MayEnter(const Caller& caller) const;

  os::ThreadChecker thread_;
  LimitsConfig limits_;
  bool everyone_ = true;
  std::set<uid_t> allowed_uids_;
  Slots<std::string> connections_;       // By account.
  Slots<std::string> sessions_;          // By account.
  Slots<std::string> network_sessions_;  // Of those.
};

// At most `burst` events at once and `per_second` on average: for log lines that a peer can
// provoke.
class RateLimiter {
 public:
  RateLimiter(double burst, double per_second)
      : burst_(burst), per_second_(per_second), tokens_(burst) {}

  bool Allow(int64_t now_ms);
  uint64_t TakeSuppressed();  // How many were refused since the last call.

 private:
  const double burst_;
  const double per_second_;
  double tokens_;
  int64_t last_ms_ = 0;
  uint64_t suppressed_ = 0;
};

}  // namespace sluice::broker
