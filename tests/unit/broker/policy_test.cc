// SPDX-License-Identifier: Apache-2.0
#include "broker/config/policy.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "broker/children/worker_users.h"

namespace sluice::broker {
namespace {

Config SmallLimits() {
  Config config;
  config.limits.max_sessions = 3;
  config.limits.max_sessions_per_user = 2;
  config.limits.max_network_sessions = 1;
  config.limits.max_connections = 3;
  config.limits.max_connections_per_user = 2;
  return config;
}

// Without a list everybody may connect; with one, exactly who is on it.
TEST(PolicyTest, AllowList) {
  Config config;
  EXPECT_FALSE(Policy(config).MayConnect(1234).has_value());
  config.access_users = {"root", "1000"};
  const Policy policy(config);
  EXPECT_FALSE(policy.MayConnect(0).has_value());
  EXPECT_FALSE(policy.MayConnect(1000).has_value());
  const auto refusal = policy.MayConnect(1001);
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->status, EACCES);
  EXPECT_NE(refusal->message.find("1001"), std::string::npos);
}

// Nobody but a worker is a user of the tenants' range, whatever the list says.
TEST(PolicyTest, TenantsAreNoClients) {
  for (const bool listed : {false, true}) {
    Config config;
    if (listed) config.access_users = {std::to_string(kFirstTenantUid + 1)};
    const Policy policy(config);
    for (const uid_t uid : {kFirstTenantUid, kFirstTenantUid + 1, kLastTenantUid}) {
      const std::optional<Refusal> refusal = policy.MayConnect(uid);
      ASSERT_TRUE(refusal.has_value()) << uid;
      EXPECT_EQ(refusal->status, EACCES);
      EXPECT_NE(refusal->message.find("worker"), std::string::npos) << refusal->message;
    }
    EXPECT_EQ(policy.MayConnect(kFirstTenantUid - 1).has_value(), listed);
  }
}

// Connections are counted per user and in all, and closing one makes room.
TEST(PolicyTest, ConnectionLimits) {
  Policy policy(SmallLimits());
  std::shared_ptr<void> first = policy.ConnectionOpened(1);
  const std::shared_ptr<void> second = policy.ConnectionOpened(1);
  EXPECT_EQ(policy.MayConnect(1)->status, EBUSY);
  EXPECT_FALSE(policy.MayConnect(2).has_value());
  const std::shared_ptr<void> third = policy.ConnectionOpened(2);
  EXPECT_EQ(policy.MayConnect(3)->status, EBUSY);
  first.reset();
  EXPECT_FALSE(policy.MayConnect(1).has_value());
}

// Sessions are counted per identity and in all, and ending one makes room.
TEST(PolicyTest, SessionLimits) {
  Policy policy(SmallLimits());
  const Identity alice = Identity::ForUid(1);
  const Identity bob = Identity::ForUid(2);
  std::shared_ptr<void> first = policy.SessionOpened(alice);
  const std::shared_ptr<void> second = policy.SessionOpened(alice);
  EXPECT_EQ(policy.MayOpenSession(alice)->status, EMFILE);
  EXPECT_FALSE(policy.MayOpenSession(bob).has_value());
  const std::shared_ptr<void> third = policy.SessionOpened(bob);
  EXPECT_EQ(policy.MayOpenSession(bob)->status, EMFILE);
  first.reset();
  EXPECT_FALSE(policy.MayOpenSession(bob).has_value());
}

// Network sessions have a limit of their own, which leaves local users their share.
TEST(PolicyTest, NetworkSessionLimit) {
  Policy policy(SmallLimits());
  const std::shared_ptr<void> one = policy.SessionOpened(Identity::ForNetworkPeer("CN=a"));
  EXPECT_TRUE(policy.MayOpenSession(Identity::ForNetworkPeer("CN=b")).has_value());
  EXPECT_FALSE(policy.MayOpenSession(Identity::ForUid(0)).has_value());
}

// A network peer cannot name itself like a local user.
TEST(PolicyTest, NetworkNamesAreApart) {
  EXPECT_NE(Identity::ForNetworkPeer("uid:0").name, Identity::ForUid(0).name);
}

// New limits hold from the next question on.
TEST(PolicyTest, UpdateTakesEffect) {
  Policy policy(SmallLimits());
  const std::shared_ptr<void> one = policy.SessionOpened(Identity::ForUid(1));
  Config narrow = SmallLimits();
  narrow.limits.max_sessions = 1;
  policy.Update(narrow);
  EXPECT_TRUE(policy.MayOpenSession(Identity::ForUid(2)).has_value());
}

// A burst passes, then the rate holds, and what was held back is counted once.
TEST(PolicyTest, RateLimiter) {
  RateLimiter limiter(3, 2);
  int64_t now_ms = 1000;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(limiter.Allow(now_ms));
  EXPECT_FALSE(limiter.Allow(now_ms));
  EXPECT_FALSE(limiter.Allow(now_ms + 100));
  EXPECT_TRUE(limiter.Allow(now_ms + 600));
  EXPECT_EQ(limiter.TakeSuppressed(), 2u);
  EXPECT_EQ(limiter.TakeSuppressed(), 0u);
  now_ms += 1'000'000;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(limiter.Allow(now_ms));
  EXPECT_FALSE(limiter.Allow(now_ms));  // Idle time earns no more than the burst.
}

}  // namespace
}  // namespace sluice::broker
