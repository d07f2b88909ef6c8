// SPDX-License-Identifier: Apache-2.0
#include "broker/config/policy.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "broker/children/memory_grants.h"
#include "broker/children/worker_users.h"
#include "broker/session_starts.h"

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

// One of this host, by the default socket.
Caller Local(uid_t uid) { return {uid, uid, nullptr}; }
Account Of(uid_t uid) { return Tenant::ForUid(uid).account; }
std::optional<Refusal> MayConnect(const Policy& policy, uid_t uid) {
  return policy.MayConnect(Local(uid), Of(uid));
}
Account OfNetwork(const std::string& peer) { return Tenant::ForNetworkPeer(peer).account; }

// Without a list everybody may connect; with one, exactly who is on it.
TEST(PolicyTest, AllowList) {
  Config config;
  EXPECT_FALSE(MayConnect(Policy(config), 1234).has_value());
  config.access_users = {"root", "1000"};
  const Policy policy(config);
  EXPECT_FALSE(MayConnect(policy, 0).has_value());
  EXPECT_FALSE(MayConnect(policy, 1000).has_value());
  const auto refusal = MayConnect(policy, 1001);
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
      const std::optional<Refusal> refusal = MayConnect(policy, uid);
      ASSERT_TRUE(refusal.has_value()) << uid;
      EXPECT_EQ(refusal->status, EACCES);
      EXPECT_NE(refusal->message.find("worker"), std::string::npos) << refusal->message;
    }
    EXPECT_EQ(MayConnect(policy, kFirstTenantUid - 1).has_value(), listed);
  }
}

// Connections are counted per user and in all, and closing one makes room.
TEST(PolicyTest, ConnectionLimits) {
  Policy policy(SmallLimits());
  std::shared_ptr<void> first = policy.ConnectionOpened(Of(1));
  const std::shared_ptr<void> second = policy.ConnectionOpened(Of(1));
  EXPECT_EQ(MayConnect(policy, 1)->status, EBUSY);
  EXPECT_FALSE(MayConnect(policy, 2).has_value());
  const std::shared_ptr<void> third = policy.ConnectionOpened(Of(2));
  EXPECT_EQ(MayConnect(policy, 3)->status, EBUSY);
  first.reset();
  EXPECT_FALSE(MayConnect(policy, 1).has_value());
}

// Of the daemon's limits an eighth is for those who have none: one account, or several together,
// cannot take the last one from the next who comes.
TEST(PolicyTest, TheLastOnesAreForThoseWhoHaveNone) {
  Config config;
  config.limits.max_sessions = 16;
  config.limits.max_network_sessions = 8;
  config.limits.max_connections = 16;
  Policy policy(config);
  std::vector<std::shared_ptr<void>> held;
  for (int i = 0; i < 14; ++i) held.push_back(policy.SessionOpened(Of(1)));
  const auto refusal = policy.MayOpenSession(Of(1));
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->status, EMFILE);
  EXPECT_NE(refusal->message.find("keeps the last 2 of its 16 sessions"), std::string::npos)
      << refusal->message;
  for (const uid_t uid : {2u, 3u}) {
    EXPECT_FALSE(policy.MayOpenSession(Of(uid)).has_value());
    held.push_back(policy.SessionOpened(Of(uid)));
    EXPECT_TRUE(policy.MayOpenSession(Of(uid)).has_value()) << "it has one";
  }
  EXPECT_TRUE(policy.MayOpenSession(Of(4)).has_value()) << "there is none left";
  held.clear();

  for (int i = 0; i < 7; ++i) held.push_back(policy.SessionOpened(OfNetwork("CN=a")));
  EXPECT_TRUE(policy.MayOpenSession(OfNetwork("CN=a")).has_value());
  EXPECT_FALSE(policy.MayOpenSession(OfNetwork("CN=b")).has_value());
  held.clear();

  for (int i = 0; i < 14; ++i) held.push_back(policy.ConnectionOpened(Of(1)));
  EXPECT_EQ(MayConnect(policy, 1)->status, EBUSY);
  for (int i = 0; i < 2; ++i) {  // A program has a second one for resources.
    EXPECT_FALSE(MayConnect(policy, 2).has_value());
    held.push_back(policy.ConnectionOpened(Of(2)));
  }
  EXPECT_EQ(MayConnect(policy, 2)->status, EBUSY);
}

// Sessions are counted per identity and in all, and ending one makes room.
TEST(PolicyTest, SessionLimits) {
  Policy policy(SmallLimits());
  const Account alice = Of(1);
  const Account bob = Of(2);
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
  const std::shared_ptr<void> one = policy.SessionOpened(OfNetwork("CN=a"));
  EXPECT_TRUE(policy.MayOpenSession(OfNetwork("CN=b")).has_value());
  EXPECT_FALSE(policy.MayOpenSession(Of(0)).has_value());
}

// A network peer cannot name itself like a local user.
TEST(PolicyTest, NetworkNamesAreApart) { EXPECT_NE(OfNetwork("uid:0").name, Of(0).name); }

// However many user ids and namespaces somebody has made, what they have is counted together; and
// they come in with whoever made them.
TEST(PolicyTest, ContainersCountForWhoMadeThem) {
  Config config = SmallLimits();
  config.access_users = {"1000"};
  Policy policy(config);
  const Caller subordinate = {100'001, 1000, nullptr};
  EXPECT_FALSE(policy.MayConnect(subordinate, Of(1000)).has_value());
  EXPECT_TRUE(policy.MayConnect(Local(100'001), Of(100'001)).has_value());
  const std::shared_ptr<void> one = policy.ConnectionOpened(Of(1000));
  const std::shared_ptr<void> two = policy.ConnectionOpened(Of(1000));
  EXPECT_EQ(policy.MayConnect(subordinate, Of(1000))->status, EBUSY);
}

// A listener's tenant has limits and a list of its own, and leaves the users' theirs.
TEST(PolicyTest, ListenersHaveTheirOwn) {
  Config config = SmallLimits();
  config.access_users = {"1"};
  config.limits.max_sessions = 10;
  Policy policy(config);
  ListenerConfig lab;
  lab.tenant = "lab";
  lab.users = {"7"};
  lab.limits.max_sessions = 1;
  lab.limits.max_connections = 1;
  ApplyListenerDefaults("/run/sluice/clients/broker.sock", &lab);
  const Account account = AccountOf(lab);
  EXPECT_FALSE(policy.MayConnect({7, 7, &lab}, account).has_value());
  const auto refusal = policy.MayConnect({1, 1, &lab}, account);
  ASSERT_TRUE(refusal.has_value());
  EXPECT_NE(refusal->message.find("lab"), std::string::npos) << refusal->message;
  const std::shared_ptr<void> connection = policy.ConnectionOpened(account);
  const std::shared_ptr<void> session = policy.SessionOpened(account);
  EXPECT_EQ(policy.MayConnect({7, 7, &lab}, account)->status, EBUSY);
  EXPECT_EQ(policy.MayOpenSession(account)->status, EMFILE);
  EXPECT_EQ(policy.SessionLimitOf(account), 1u);
  EXPECT_FALSE(MayConnect(policy, 1).has_value());
  EXPECT_FALSE(policy.MayOpenSession(Of(1)).has_value());
  EXPECT_EQ(policy.SessionLimitOf(Of(1)), 2u);
}

// New limits hold from the next question on.
TEST(PolicyTest, UpdateTakesEffect) {
  Policy policy(SmallLimits());
  const std::shared_ptr<void> one = policy.SessionOpened(Of(1));
  Config narrow = SmallLimits();
  narrow.limits.max_sessions = 1;
  policy.Update(narrow);
  EXPECT_TRUE(policy.MayOpenSession(Of(2)).has_value());
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

class SessionStartsTest : public testing::Test {
 protected:
  bool Ask(const std::string& account, uint64_t session, uint64_t owner = 1) {
    return starts_.Ask(account, owner, [this, session] {
      started_.push_back(session);
      return session;
    });
  }
  std::vector<uint64_t> Take() { return std::exchange(started_, {}); }

  SessionStarts starts_{/*most_of_account=*/2, /*most_in_all=*/3};
  std::vector<uint64_t> started_;
};

// An account has two on their way; whoever comes meanwhile has the next place.
TEST_F(SessionStartsTest, OneAccountWaitsForItself) {
  for (uint64_t session = 1; session <= 5; ++session) EXPECT_TRUE(Ask("a", session));
  EXPECT_EQ(Take(), (std::vector<uint64_t>{1, 2}));
  EXPECT_TRUE(Ask("b", 11));
  EXPECT_EQ(Take(), (std::vector<uint64_t>{11}));
  EXPECT_TRUE(Ask("b", 12));
  EXPECT_TRUE(Take().empty());
  starts_.Done(1);
  starts_.Done(2);
  starts_.Done(11);
  EXPECT_EQ(Take(), (std::vector<uint64_t>{3, 12, 4}));
  starts_.Done(12);
  EXPECT_TRUE(Take().empty()) << "its two are on their way";
  starts_.Done(3);
  EXPECT_EQ(Take(), (std::vector<uint64_t>{5}));
  EXPECT_EQ(starts_.waiting(), 0u);
}

// One that starts nothing (it is refused) takes no place, nor does what was done twice.
TEST_F(SessionStartsTest, NothingStartedTakesNoPlace) {
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(Ask("a", 0));
  EXPECT_EQ(Take().size(), 5u);
  EXPECT_TRUE(Ask("a", 1) && Ask("a", 2) && Ask("a", 3) && Ask("a", 4));
  starts_.Done(1);
  starts_.Done(1);
  EXPECT_EQ(Take(), (std::vector<uint64_t>{1, 2, 3}));
}

// An account that has left starts nothing.
TEST_F(SessionStartsTest, WhoHasLeftIsForgotten) {
  EXPECT_TRUE(Ask("a", 1) && Ask("a", 2) && Ask("a", 3, /*owner=*/7) && Ask("a", 4));
  starts_.Forget(7);
  starts_.Done(1);
  starts_.Done(2);
  EXPECT_EQ(Take(), (std::vector<uint64_t>{1, 2, 4}));
}

// How many of an account wait is bounded, and does not bound another's.
TEST_F(SessionStartsTest, WaitingIsBounded) {
  for (uint64_t i = 0; i < SessionStarts::kMostWaiting + 2; ++i) EXPECT_TRUE(Ask("a", i + 1));
  EXPECT_FALSE(Ask("a", 9999));
  EXPECT_TRUE(Ask("b", 10'000));
  EXPECT_EQ(Take(), (std::vector<uint64_t>{1, 2, 10'000}));
}

class MemoryGrantsTest : public testing::Test {
 protected:
  using Granted = std::vector<std::pair<uint64_t, uint64_t>>;  // Session and bytes.

  MemoryGrants grants_{{[this](uint64_t session, uint64_t, uint64_t bytes) {
                          granted_.push_back({session, bytes});
                        },
                        [this](uint64_t session) { asked_.push_back(session); }}};
  Granted TakeGranted() { return std::exchange(granted_, {}); }
  std::vector<uint64_t> TakeAsked() { return std::exchange(asked_, {}); }
  bool Want(uint64_t session, uint64_t bytes, int64_t now_ms = 0) {
    return grants_.Want(session, 1, bytes, /*ahead=*/false, now_ms);
  }

  Granted granted_;
  std::vector<uint64_t> asked_;
};

// The memory that is left is given in parts, so that many small wants need few questions, and all
// of it can be had.
TEST_F(MemoryGrantsTest, GivesAPartOfWhatIsLeftAhead) {
  grants_.Add(1, "a", 1000);
  EXPECT_TRUE(Want(1, 200));
  EXPECT_EQ(TakeGranted(), (Granted{{1, 400}}));
  EXPECT_TRUE(grants_.Want(1, 2, 1000, /*ahead=*/true, 0));
  EXPECT_EQ(TakeGranted(), (Granted{{1, 150}}));
  EXPECT_TRUE(Want(1, 450));
  EXPECT_EQ(TakeGranted(), (Granted{{1, 450}}));
  EXPECT_TRUE(Want(1, 1));
  EXPECT_EQ(TakeGranted(), (Granted{{1, 0}}));
  EXPECT_EQ(grants_.GrantedTo(1), 1000u);
}

// The sum of an account's sessions is bounded, and another account has its own.
TEST_F(MemoryGrantsTest, AnAccountHasOneLimit) {
  grants_.Add(1, "a", 1000);
  grants_.Add(2, "a", 1000);
  grants_.Add(3, "b", 1000);
  EXPECT_TRUE(Want(1, 1000));
  EXPECT_TRUE(Want(2, 1));
  EXPECT_TRUE(Want(3, 1000));
  EXPECT_EQ(TakeAsked(), (std::vector<uint64_t>{1}));
  EXPECT_TRUE(grants_.Return(1, 0, 0));
  EXPECT_EQ(TakeGranted(), (Granted{{1, 1000}, {3, 1000}, {2, 0}}));
  EXPECT_EQ(grants_.GrantedIn("a"), 1000u);
}

// One gets what another does not use, once it has given it back.
TEST_F(MemoryGrantsTest, UnusedMemoryGoesToWhoNeedsIt) {
  grants_.Add(1, "a", 1000);
  grants_.Add(2, "a", 1000);
  EXPECT_TRUE(Want(1, 600));
  EXPECT_TRUE(Want(2, 400));
  EXPECT_EQ(TakeGranted(), (Granted{{1, 700}}));
  EXPECT_EQ(TakeAsked(), (std::vector<uint64_t>{1}));
  EXPECT_TRUE(grants_.Return(1, 100, 0));
  EXPECT_EQ(TakeGranted(), (Granted{{2, 400}}));
}

// A worker's end gives all back that it had, to who waits too.
TEST_F(MemoryGrantsTest, AnEndGivesBack) {
  grants_.Add(1, "a", 1000);
  grants_.Add(2, "a", 1000);
  EXPECT_TRUE(Want(1, 1000));
  EXPECT_TRUE(Want(2, 1000));
  TakeGranted();
  grants_.Remove(1, 1);
  EXPECT_EQ(TakeGranted(), (Granted{{2, 1000}}));
  grants_.Remove(2, 2);
  EXPECT_EQ(grants_.GrantedIn("a"), 0u);
  EXPECT_EQ(grants_.NextDueMs(), std::nullopt);
}

// One that says nothing keeps what it has, and holds nobody up for longer than a round.
TEST_F(MemoryGrantsTest, SilenceHoldsNobodyUp) {
  grants_.Add(1, "a", 1000);
  grants_.Add(2, "a", 1000);
  EXPECT_TRUE(Want(1, 900));
  EXPECT_TRUE(Want(2, 500));
  TakeGranted();
  EXPECT_EQ(grants_.NextDueMs(), MemoryGrants::kRoundMs);
  grants_.AdvanceTo(MemoryGrants::kRoundMs);
  EXPECT_EQ(TakeGranted(), (Granted{{2, 0}}));
  // Its late answer counts, and it is not asked again before.
  EXPECT_EQ(TakeAsked(), (std::vector<uint64_t>{1}));
  EXPECT_TRUE(Want(2, 500, 1000));
  EXPECT_TRUE(TakeAsked().empty());
  EXPECT_EQ(TakeGranted(), (Granted{{2, 0}}));
  EXPECT_TRUE(grants_.Return(1, 900, 2000));
  EXPECT_TRUE(Want(2, 500, 2000));
  EXPECT_EQ(TakeGranted().front().first, 2u);
}

// However often one wants more than there is, the others are asked no more often than in rounds,
// and a want is decided by a round that began after it.
TEST_F(MemoryGrantsTest, RoundsAreBounded) {
  grants_.Add(1, "a", 1000);
  grants_.Add(2, "a", 1000);
  grants_.Add(3, "a", 1000);
  EXPECT_TRUE(Want(1, 1000));
  TakeGranted();
  EXPECT_TRUE(Want(2, 10));
  EXPECT_TRUE(Want(3, 10));
  EXPECT_EQ(TakeAsked(), (std::vector<uint64_t>{1}));
  EXPECT_TRUE(grants_.Return(1, 0, 5));
  EXPECT_EQ(TakeGranted(), (Granted{{2, 0}}));  // The third came after the round had begun.
  EXPECT_TRUE(TakeAsked().empty());
  EXPECT_EQ(grants_.NextDueMs(), 5 + MemoryGrants::kBetweenRoundsMs);
  grants_.AdvanceTo(5 + MemoryGrants::kBetweenRoundsMs);
  EXPECT_EQ(TakeAsked(), (std::vector<uint64_t>{1}));
  EXPECT_TRUE(grants_.Return(1, 10, 30));
  EXPECT_EQ(TakeGranted(), (Granted{{3, 10}}));
}

// No sound worker says this.
TEST_F(MemoryGrantsTest, LiesAreRefused) {
  grants_.Add(1, "a", 1000);
  grants_.Add(2, "a", 1000);
  EXPECT_FALSE(Want(7, 1)) << "no such session, or one without a limit";
  EXPECT_FALSE(grants_.Return(1, 0, 0)) << "it was not asked";
  EXPECT_TRUE(Want(1, 1000));
  EXPECT_TRUE(Want(2, 1));
  EXPECT_FALSE(Want(2, 1)) << "two questions at once";
  EXPECT_FALSE(grants_.Return(1, 1001, 0)) << "more than it had";
  EXPECT_TRUE(Want(1, UINT64_MAX));
  EXPECT_EQ(TakeGranted().back(), (std::pair<uint64_t, uint64_t>{1, 0}));
  EXPECT_EQ(grants_.GrantedIn("a"), 1000u);
}

// A lower limit takes nothing away that is in use.
TEST_F(MemoryGrantsTest, ALowerLimitHoldsFromNowOn) {
  grants_.Add(1, "a", 1000);
  EXPECT_TRUE(Want(1, 1000));
  grants_.Add(2, "a", 500);
  TakeGranted();
  EXPECT_TRUE(Want(2, 100));
  EXPECT_TRUE(grants_.Return(1, 0, 0));
  EXPECT_EQ(TakeGranted(), (Granted{{2, 0}}));
  EXPECT_EQ(grants_.GrantedIn("a"), 1000u);
}

}  // namespace
}  // namespace sluice::broker
