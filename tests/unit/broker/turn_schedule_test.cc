// SPDX-License-Identifier: Apache-2.0
// Workers that are made up, under a clock that is made up: what a schedule of turns decides.
#include "broker/scheduling/turn_schedule.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace sluice::broker {
namespace {

using State = TurnSchedule::State;
using wire::TurnOrder;

constexpr int64_t kMs = 1'000'000;

// Light work: a worker that may go launches every 20 us, and has nothing under way after that.
struct Worker {
  bool wants = true;
  bool obeys = true;
  bool claims_work = false;    // Says for ever that something of its runs.
  bool needs_another = false;  // Its running work ends when something else of its is submitted.
  int64_t kernel_ns = 10'000;
  int64_t pause_ns = 0;  // Behind every eighth.
  TurnPayer payer = {};
  // Its work so far.
  uint32_t submitted = 0;
  int64_t busy_until = 0;
  int64_t wants_from = 0;
  int64_t had_ns = 0;
  int64_t held_ns = 0;
};

bool Goes(TurnOrder order) {
  return wire::MayGo(static_cast<uint32_t>(order)) || order == TurnOrder::kPaced;
}

class TurnScheduleTest : public testing::Test {
 protected:
  // Runs until then, by the schedule's own times. `each` sees every look.
  void RunFor(int64_t duration, const std::function<void()>& each = {}) {
    const int64_t end = now_ + duration;
    while (now_ < end) {
      for (auto& [id, worker] : workers_) schedule_.Note(id, Act(id, worker), now_, worker.payer);
      const int64_t wait = schedule_.Decide(now_);
      ASSERT_GT(wait, 0);
      ASSERT_LE(wait, TurnSchedule::kSleepySampleNs);
      if (each) each();
      CountGoing(wait);
      now_ += wait;
    }
  }

  TurnSchedule::Says Act(uint64_t id, Worker& worker) {
    const bool may_go = Goes(schedule_.OrderOf(id)) || !worker.obeys;
    TurnSchedule::Says says;
    const bool wants = worker.wants && now_ >= worker.wants_from;
    says.waiting = wants && !may_go;
    if (wants && may_go && now_ >= worker.busy_until) {
      ++worker.submitted;
      worker.busy_until = now_ + worker.kernel_ns;
      if (worker.pause_ns != 0 && worker.submitted % 8 == 0)
        worker.wants_from = worker.busy_until + worker.pause_ns;
    }
    if (worker.needs_another && may_go && schedule_.UsageOf(id).turns > 1)
      worker.claims_work = false;
    says.submitted = worker.submitted;
    says.running = worker.claims_work || now_ < worker.busy_until;
    return says;
  }

  void CountGoing(int64_t wait) {
    int going = 0;
    for (auto& [id, worker] : workers_) {
      const TurnOrder order = schedule_.OrderOf(id);
      if (!Goes(order)) worker.held_ns += wait;
      if (order != TurnOrder::kGo && order != TurnOrder::kPaced) continue;
      ++going;
      worker.had_ns += wait;
    }
    EXPECT_LE(going, 1);
  }

  TurnSchedule schedule_{TurnSchedule::Settings{}};
  std::map<uint64_t, Worker> workers_;
  int64_t now_ = 1'000'000 * kMs;
};

TEST_F(TurnScheduleTest, ALoneOneNeverMeetsAnOrder) {
  workers_[1] = {};
  workers_[2].wants = false;
  RunFor(1000 * kMs, [this] { EXPECT_EQ(schedule_.OrderOf(1), TurnOrder::kFree); });
  EXPECT_EQ(schedule_.state(now_), State::kNoTurns);
}

TEST_F(TurnScheduleTest, TwoAtWorkHaveEqualTimeInTurns) {
  workers_[1] = {};
  workers_[2] = {};
  RunFor(1000 * kMs);
  EXPECT_EQ(schedule_.state(now_), State::kTurns);
  EXPECT_GT(workers_[1].had_ns, 400 * kMs);
  EXPECT_GT(workers_[2].had_ns, 400 * kMs);
  EXPECT_NEAR(static_cast<double>(schedule_.UsageOf(1).turns), 240, 40);
  EXPECT_GT(schedule_.UsageOf(1).waited_ns, 400 * kMs);
}

TEST_F(TurnScheduleTest, TurnsEndWhenTheOthersHaveNothingToDo) {
  workers_[1] = {};
  workers_[2] = {};
  RunFor(100 * kMs);
  workers_[2].wants = false;
  RunFor(100 * kMs);
  EXPECT_EQ(schedule_.state(now_), State::kNoTurns);
  EXPECT_EQ(schedule_.OrderOf(1), TurnOrder::kFree);
}

// The one that had least: a newcomer is not given all that it has not had before.
TEST_F(TurnScheduleTest, WhoComesLateHasNotSavedUp) {
  workers_[1] = {};
  workers_[2] = {};
  workers_[3].wants = false;
  RunFor(1000 * kMs);
  workers_[3].wants = true;
  for (auto& [id, worker] : workers_) worker.had_ns = 0;
  RunFor(300 * kMs);
  for (const auto& [id, worker] : workers_)
    EXPECT_NEAR(static_cast<double>(worker.had_ns), 95e6, 15e6) << id;
}

// Sixty sessions of one account have the share of one, evenly among them.
TEST_F(TurnScheduleTest, AnAccountHasOneShareHoweverManySessions) {
  workers_[1] = {};
  for (uint64_t id = 2; id <= 13; ++id) workers_[id].payer.account = "uid:1000";
  RunFor(3000 * kMs);
  int64_t theirs = 0;
  for (uint64_t id = 2; id <= 13; ++id) {
    theirs += workers_[id].had_ns;
    EXPECT_GT(workers_[id].had_ns, 60 * kMs) << id;
  }
  EXPECT_NEAR(static_cast<double>(workers_[1].had_ns), static_cast<double>(theirs), 150e6);
}

TEST_F(TurnScheduleTest, SharesAreHeld) {
  workers_[1].payer = {"tenant:big", 300};
  workers_[2].payer = {"tenant:small", 100};
  RunFor(3000 * kMs);
  const double small = static_cast<double>(workers_[2].had_ns);
  EXPECT_NEAR(static_cast<double>(workers_[1].had_ns) / small, 3.0, 0.3);
}

// An account that comes late has saved up no more than a turn, and neither has its next session.
TEST_F(TurnScheduleTest, ALateSessionOfAnAccountHasNotSavedUp) {
  workers_[1].payer.account = "a";
  workers_[2].payer.account = "b";
  workers_[3].payer.account = "a";
  workers_[3].wants = false;
  RunFor(1000 * kMs);
  workers_[3].wants = true;
  for (auto& [id, worker] : workers_) worker.had_ns = 0;
  RunFor(400 * kMs);
  EXPECT_NEAR(static_cast<double>(workers_[2].had_ns), 190e6, 25e6);
  EXPECT_NEAR(static_cast<double>(workers_[1].had_ns), 95e6, 20e6);
  EXPECT_NEAR(static_cast<double>(workers_[3].had_ns), 95e6, 20e6);
}

// An account is forgotten with its last session, and nothing is left of what it had.
TEST_F(TurnScheduleTest, AnAccountsSessionsMayEndInItsTurn) {
  for (uint64_t id = 1; id <= 4; ++id) workers_[id].payer.account = id <= 2 ? "a" : "b";
  RunFor(50 * kMs);
  for (const uint64_t id : {uint64_t{1}, uint64_t{2}}) {
    while (schedule_.OrderOf(id) != TurnOrder::kGo) RunFor(1);
    workers_.erase(id);
    schedule_.Remove(id);
    schedule_.Remove(id);  // Nobody's any more.
  }
  RunFor(20 * kMs);
  workers_[5].payer.account = "a";
  for (auto& [id, worker] : workers_) worker.had_ns = 0;
  RunFor(200 * kMs);
  EXPECT_NEAR(static_cast<double>(workers_[5].had_ns), 95e6, 15e6);
}

// One that works now and then waits for a turn at most, whoever else there is.
TEST_F(TurnScheduleTest, ARareOneWaitsForOneTurn) {
  for (uint64_t id = 1; id <= 8; ++id) workers_[id] = {};
  RunFor(100 * kMs);
  Worker& rare = workers_[8];
  for (int i = 0; i < 20; ++i) {
    rare.wants = false;
    RunFor(10 * kMs);
    rare.wants = true;
    const int64_t began = now_;
    const uint32_t before = rare.submitted;
    while (rare.submitted == before) RunFor(1);
    EXPECT_LT(now_ - began, 3 * kMs);
  }
}

// A turn passes on after the grace, not at once, and not with a holder that only thinks.
TEST_F(TurnScheduleTest, AnIdleHolderLosesItsTurnAfterTheGrace) {
  workers_[1] = {};
  workers_[2] = {};
  RunFor(50 * kMs);
  while (schedule_.OrderOf(1) != TurnOrder::kGo) RunFor(1);
  workers_[1].wants = false;
  const int64_t idle_since = now_;
  while (schedule_.OrderOf(2) != TurnOrder::kGo) RunFor(1);
  EXPECT_GE(now_ - idle_since, 100'000);
  EXPECT_LE(now_ - idle_since, 500'000);
}

// Work of a turn or longer keeps the driver's own sharing, and is looked at ever more rarely.
TEST_F(TurnScheduleTest, LongWorkEndsTurnsForAWhile) {
  workers_[1] = {};
  workers_[2].kernel_ns = 20 * kMs;
  RunFor(20'000 * kMs);
  EXPECT_GT(workers_[1].held_ns, 0);
  EXPECT_LT(workers_[1].held_ns, 20'000 * kMs / 100);
}

TEST_F(TurnScheduleTest, TurnsComeBackAfterLongWork) {
  workers_[1] = {};
  workers_[2].kernel_ns = 20 * kMs;
  RunFor(300 * kMs);
  workers_[2].kernel_ns = 10'000;
  RunFor(TurnSchedule::kLongestPauseNs + 100 * kMs);
  EXPECT_EQ(schedule_.state(now_), State::kTurns);
}

// A liar cannot keep the turn, nor have the others wait.
TEST_F(TurnScheduleTest, AWorkerThatClaimsWorkForEverHoldsNobodyBack) {
  workers_[1] = {};
  workers_[2] = {};
  workers_[3].claims_work = true;
  workers_[3].wants = false;
  RunFor(10'000 * kMs, [this] { EXPECT_NE(schedule_.OrderOf(3), TurnOrder::kGo); });
  EXPECT_NE(schedule_.state(now_), State::kTurns);
  EXPECT_LT(workers_[1].held_ns, 10'000 * kMs / 100);
}

TEST_F(TurnScheduleTest, AWorkerThatDoesNotObeyCostsTheOthersTheirTurnsAndNoMore) {
  workers_[1] = {};
  workers_[2] = {};
  workers_[3].obeys = false;
  RunFor(10'000 * kMs);
  EXPECT_EQ(schedule_.state(now_), State::kLongWork);
  EXPECT_LT(workers_[1].held_ns, 10'000 * kMs / 100);
  EXPECT_LT(workers_[2].held_ns, 10'000 * kMs / 100);
}

TEST_F(TurnScheduleTest, AWorkerThatDiesInItsTurnIsForgotten) {
  workers_[1] = {};
  workers_[2] = {};
  workers_[3] = {};
  RunFor(50 * kMs);
  while (schedule_.OrderOf(1) != TurnOrder::kGo) RunFor(1);
  workers_.erase(1);
  schedule_.Remove(1);
  const uint64_t two = schedule_.UsageOf(2).turns, three = schedule_.UsageOf(3).turns;
  RunFor(20 * kMs);
  EXPECT_GE(schedule_.UsageOf(2).turns, two + 3);
  EXPECT_GE(schedule_.UsageOf(3).turns, three + 3);
  workers_.erase(2);
  schedule_.Remove(2);
  RunFor(100 * kMs);
  EXPECT_EQ(schedule_.OrderOf(3), TurnOrder::kFree);
}

// Whoever is next may get its processor going before its turn.
TEST_F(TurnScheduleTest, TheNextIsToldShortlyBefore) {
  workers_[1] = {};
  workers_[2] = {};
  RunFor(50 * kMs);
  while (schedule_.OrderOf(1) != TurnOrder::kGo) RunFor(1);
  while (schedule_.OrderOf(2) == TurnOrder::kWait) RunFor(1);
  EXPECT_EQ(schedule_.OrderOf(2), TurnOrder::kSoon);
  const int64_t told = now_;
  while (schedule_.OrderOf(2) != TurnOrder::kGo) RunFor(1);
  EXPECT_LE(now_ - told, TurnSchedule::kSoonNs + 2 * TurnSchedule::kLookNs);
}

using Shares = TurnSchedule::Settings::Shares;

class WindowsTest : public TurnScheduleTest {
 protected:
  void Configure(Shares shares, bool turns = true, bool is_cpu = false) {
    TurnSchedule::Settings settings;
    settings.shares = shares;
    settings.turns = turns;
    settings.is_cpu = is_cpu;
    schedule_.Configure(settings);
  }
  void SetUp() override { Configure(Shares::kUneven); }

  // Of the device's time, by the kernels that have run: a light one saturates while it may go.
  double Work(uint64_t id) {
    const Worker& worker = workers_[id];
    return worker.kernel_ns < kMs ? static_cast<double>(worker.had_ns)
                                  : static_cast<double>(worker.submitted * worker.kernel_ns);
  }
  void ExpectShares(const std::map<uint64_t, double>& percent) {
    double sum = 0;
    for (const auto& [id, share] : percent) sum += Work(id);
    for (const auto& [id, share] : percent) EXPECT_NEAR(100 * Work(id) / sum, share, 2) << id;
  }
  void AddFour(const std::vector<int64_t>& kernels_ns) {
    for (uint64_t i = 0; i < kernels_ns.size(); ++i) {
      workers_[i + 1].kernel_ns = kernels_ns[i];
      workers_[i + 1].payer = {"tenant:" + std::to_string(i), static_cast<uint32_t>(10 * (i + 1))};
    }
  }
};

TEST_F(WindowsTest, SharesOfLightWorkHold) {
  AddFour({10'000, 20'000, 10'000, 40'000});
  RunFor(10'000 * kMs);
  EXPECT_EQ(schedule_.state(now_), State::kWindows);
  ExpectShares({{1, 10}, {2, 20}, {3, 30}, {4, 40}});
}

TEST_F(WindowsTest, SharesOfHeavyWorkHold) {
  AddFour({20 * kMs, kMs, 5 * kMs, 20 * kMs});
  RunFor(10'000 * kMs);
  ExpectShares({{1, 10}, {2, 20}, {3, 30}, {4, 40}});
  EXPECT_NEAR(static_cast<double>(schedule_.UsageOf(4).device_ns), Work(4), 0.05 * Work(4));
}

TEST_F(WindowsTest, SharesOfMixedWorkHold) {
  AddFour({20 * kMs, 10'000, 20 * kMs, 30'000});
  RunFor(10'000 * kMs);
  ExpectShares({{1, 10}, {2, 20}, {3, 30}, {4, 40}});
}

// It loses its window before it has used its share up, and is given the rest when it wants it.
TEST_F(WindowsTest, WhoLetsOthersGoInBetweenLosesNothing) {
  AddFour({20 * kMs, 20 * kMs, 20 * kMs, 100'000});
  workers_[4].pause_ns = 400'000;
  RunFor(10'000 * kMs);
  EXPECT_GT(static_cast<double>(schedule_.UsageOf(4).device_ns), 3500e6);
}

// Nobody has given shares: an account of twelve sessions has no more of the device than one of one.
TEST_F(WindowsTest, ManySessionsOfHeavyWorkHaveOneShare) {
  workers_[1].kernel_ns = 5 * kMs;
  workers_[1].payer.account = "a";
  for (uint64_t id = 2; id <= 13; ++id) {
    workers_[id].kernel_ns = 5 * kMs;
    workers_[id].payer.account = "b";
  }
  RunFor(10'000 * kMs);
  double theirs = 0;
  for (uint64_t id = 2; id <= 13; ++id) {
    theirs += Work(id);
    EXPECT_GT(Work(id), 300e6) << id;
  }
  EXPECT_NEAR(Work(1) / (Work(1) + theirs), 0.5, 0.02);
}

// As without shares: each has what the driver gives it.
TEST_F(WindowsTest, AccountsThatAreAlikeHaveNone) {
  for (const uint64_t id : {uint64_t{1}, uint64_t{2}}) {
    workers_[id].payer.account = std::to_string(id);
    workers_[id].kernel_ns = 20 * kMs;
  }
  RunFor(1000 * kMs, [this] { EXPECT_NE(schedule_.state(now_), State::kWindows); });
  Configure(Shares::kAlways);
  RunFor(1000 * kMs);
  EXPECT_EQ(schedule_.state(now_), State::kWindows);
}

TEST_F(WindowsTest, OneAccountMeetsNone) {
  Configure(Shares::kAlways, /*turns=*/false, /*is_cpu=*/true);
  workers_[1].payer.account = workers_[2].payer.account = "a";
  workers_[3].payer.account = "b";
  workers_[3].wants = false;
  RunFor(1000 * kMs, [this] { EXPECT_EQ(schedule_.OrderOf(1), TurnOrder::kFree); });
  workers_[3].wants = true;
  RunFor(1000 * kMs);
  EXPECT_EQ(schedule_.state(now_), State::kWindows);
  EXPECT_NEAR(static_cast<double>(schedule_.UsageOf(3).device_ns), 490e6, 30e6);
  workers_[3].wants = false;
  RunFor(100 * kMs);
  EXPECT_EQ(schedule_.OrderOf(1), TurnOrder::kFree);
}

// A worker that is told to end polls without sleep, which on a processor takes the time of the one
// that works.
TEST_F(WindowsTest, OnProcessorsNobodySpins) {
  Configure(Shares::kAlways, /*turns=*/false, /*is_cpu=*/true);
  AddFour({10'000, 10'000, 5 * kMs, 10'000});
  RunFor(1000 * kMs, [this] {
    for (const auto& [id, worker] : workers_) EXPECT_NE(schedule_.OrderOf(id), TurnOrder::kSoon);
  });
}

// It waits for a window of each at most, though it has a tenth of the device.
TEST_F(WindowsTest, ARareOneIsNextAfterTheWindow) {
  AddFour({10'000, 10'000, 20 * kMs, 10'000});
  workers_[1].wants = false;
  RunFor(200 * kMs);
  for (int i = 0; i < 20; ++i) {
    workers_[1].wants = false;
    RunFor(30 * kMs);
    workers_[1].wants = true;
    const int64_t began = now_;
    const uint32_t before = workers_[1].submitted;
    while (workers_[1].submitted == before) RunFor(1);
    EXPECT_LT(now_ - began, 26 * kMs);
  }
}

// It was given the device before there were windows, or never ends: the others go on beside it.
TEST_F(WindowsTest, WorkWithoutEndHoldsNobodyBackForLong) {
  AddFour({10'000, 10'000, 10'000});
  workers_[3].claims_work = true;
  RunFor(3000 * kMs);
  const int64_t first = workers_[1].had_ns;
  EXPECT_GT(first, 300 * kMs);
  RunFor(10'000 * kMs);
  EXPECT_GT(workers_[1].had_ns - first, 10'000 * kMs / 6);
  EXPECT_GT(workers_[2].had_ns, 13'000 * kMs / 3);
}

// It has kernels queued when windows begin. Later each is waited for: no two accounts' work is
// under way at once.
TEST_F(WindowsTest, WhatWasQueuedBeforeEndsAndIsNotLeftBehindForEver) {
  AddFour({5 * kMs, 5 * kMs});
  workers_[2].busy_until = now_ + 300 * kMs;
  RunFor(1000 * kMs);
  RunFor(1000 * kMs,
         [this] { EXPECT_FALSE(now_ < workers_[1].busy_until && now_ < workers_[2].busy_until); });
}

// Long work may wait for other work that the same worker has not been let submit.
TEST_F(WindowsTest, WhoNeedsAnotherCommandToEndComesToIt) {
  AddFour({10'000, 10'000});
  workers_[2].claims_work = workers_[2].needs_another = true;
  RunFor(4000 * kMs);
  EXPECT_FALSE(workers_[2].claims_work);
  EXPECT_GT(workers_[2].had_ns, 500 * kMs);
}

// Two long seconds of one account are paid for by one at most, and not at all once it was alone.
TEST_F(WindowsTest, DebtsAreBoundedAndForgotten) {
  AddFour({10'000, 10'000});
  workers_[2].kernel_ns = 4000 * kMs;
  RunFor(1500 * kMs);
  workers_[2].kernel_ns = 10'000;
  RunFor(4500 * kMs);  // The work under way has ended, and is paid for.
  workers_[2].had_ns = workers_[1].had_ns = 0;
  RunFor(1000 * kMs);
  EXPECT_GT(workers_[2].had_ns, 500 * kMs);
  workers_[1].wants = false;
  RunFor(5000 * kMs);
  workers_[1].wants = true;
  workers_[2].had_ns = workers_[1].had_ns = 0;
  RunFor(300 * kMs);
  ExpectShares({{1, 33.3}, {2, 66.7}});
}

// Beside floods: it waits for the kernel that runs, and not for the window's end.
TEST_F(WindowsTest, AnInteractiveOneIsNextAtOnce) {
  AddFour({10'000, 10'000, kMs, kMs});
  workers_[1].payer.interactive_percent = 20;
  workers_[1].wants = false;
  RunFor(200 * kMs);
  for (int i = 0; i < 50; ++i) {
    const int64_t began = now_;
    const uint32_t before = workers_[1].submitted;
    workers_[1].wants = true;
    while (workers_[1].submitted == before) RunFor(1);
    EXPECT_LT(now_ - began, kMs + 4 * TurnSchedule::kLookNs) << i;
    workers_[1].wants = false;
    RunFor(30 * kMs);
    EXPECT_TRUE(schedule_.HasInteractive(now_));
  }
  RunFor(2000 * kMs);
  EXPECT_FALSE(schedule_.HasInteractive(now_));
}

// A GPU's driver puts its work between that of a kernel which lasts longer than it may wait.
TEST_F(WindowsTest, AnInteractiveOneDoesNotWaitForLongWork) {
  AddFour({10'000, 20 * kMs, 20 * kMs, 20 * kMs});
  workers_[1].payer.interactive_percent = 20;
  for (int i = 0; i < 50; ++i) {
    workers_[1].wants = false;
    RunFor(30 * kMs);
    const int64_t began = now_;
    const uint32_t before = workers_[1].submitted;
    workers_[1].wants = true;
    while (workers_[1].submitted == before) RunFor(1);
    if (i > 5) {
      EXPECT_LT(now_ - began, 2 * TurnSchedule::kBurstDrainNs) << i;
    }
  }
}

// One that wants more than its part has that, and its share of what is left; in few, long windows.
TEST_F(WindowsTest, AnInteractiveOneBeyondItsBurstIsAsTheOthers) {
  AddFour({10'000, 20 * kMs, 20 * kMs, 20 * kMs});
  workers_[1].payer.interactive_percent = 30;
  RunFor(10'000 * kMs);
  double sum = 0;
  for (uint64_t id = 1; id <= 4; ++id) sum += Work(id);
  EXPECT_NEAR(100 * Work(1) / sum, 31, 5);
  EXPECT_NEAR(Work(4) / Work(2), 2, 0.3);
  EXPECT_LT(schedule_.UsageOf(1).turns, 1000u);
}

}  // namespace
}  // namespace sluice::broker
