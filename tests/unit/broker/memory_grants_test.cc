// SPDX-License-Identifier: Apache-2.0
#include "broker/children/memory_grants.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace sluice::broker {
namespace {

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

// What is left is given in parts, so that many small wants need few questions, and all of it can be
// had.
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

// What one does not use another gets, once it has given it back.
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

// What no sound worker says.
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
