// SPDX-License-Identifier: Apache-2.0
// The order of turns and shares, by the pages of workers that the test plays: their words are
// constant.
#include "broker/scheduling/turn_giver.h"

#include <gtest/gtest.h>

#include <functional>
#include <list>
#include <string>
#include <thread>

#include "proto/spin.h"

namespace sluice::broker {
namespace {

using wire::TurnOrder;

constexpr int64_t kTurnPatienceNs = 20'000'000'000;
constexpr uint64_t kTurnDevice = 7;

struct PlayedWorker {
  uint64_t id = 0;
  os::SharedMapping orders_page;
  os::SharedMapping words_page;

  TurnOrder order() const {
    const auto* orders = reinterpret_cast<const wire::TurnOrders*>(orders_page.data());
    return static_cast<TurnOrder>(orders->order.load());
  }
  wire::TurnWords& words() { return *reinterpret_cast<wire::TurnWords*>(words_page.data()); }
};

class TurnGiverTest : public testing::Test {
 protected:
  void Configure(TurnsConfig::Mode turns, TurnsConfig::Shares shares, bool divides = false) {
    TurnsConfig config;
    config.mode = turns;
    config.shares = shares;
    giver_.Configure(config, divides);
  }
  // A worker that has work for the device and is held back.
  PlayedWorker* Add(const std::string& account, uint32_t share, bool is_cpu,
                    bool has_turns = false) {
    Account payer;
    payer.name = account;
    payer.share = share;
    const uint64_t id = workers_.size() + 1;
    TurnGiver::Pages pages = giver_.Add(id, payer);
    if (!pages.orders.valid()) return nullptr;
    PlayedWorker& worker = workers_.emplace_back();
    worker.id = id;
    worker.orders_page =
        *os::SharedMapping::Map(pages.orders.get(), wire::kTurnPageBytes, /*writable=*/false);
    worker.words_page =
        *os::SharedMapping::Map(pages.words.get(), wire::kTurnPageBytes, /*writable=*/true);
    worker.words().is_cpu = is_cpu ? 1 : 0;
    worker.words().waiting = 1;
    (has_turns ? worker.words().device : worker.words().share_device) = kTurnDevice;
    return &worker;
  }
  bool There() {
    if (Add("probe", 100, false) == nullptr) return false;
    giver_.Remove(1);
    workers_.clear();
    return true;
  }
  static bool Comes(const std::function<bool()>& condition) {
    const int64_t end = wire::MonotonicNs() + kTurnPatienceNs;
    while (!condition() && wire::MonotonicNs() < end) std::this_thread::yield();
    return condition();
  }
  bool SharesBecome(const std::string& state) {
    return Comes([&] { return giver_.ReportOf(1).shares == state; });
  }

  std::list<PlayedWorker> workers_;
  TurnGiver giver_;
};

#define SKIP_WITHOUT_PAGES() \
  if (!There()) GTEST_SKIP() << giver_.ReportOf(1).state

TEST_F(TurnGiverTest, AccountsOfDifferentSharesHaveThemWithoutTurns) {
  Configure(TurnsConfig::Mode::kOff, TurnsConfig::Shares::kAuto);
  SKIP_WITHOUT_PAGES();
  PlayedWorker* const small = Add("a", 100, /*is_cpu=*/true);
  PlayedWorker* const large = Add("b", 300, /*is_cpu=*/true);
  EXPECT_TRUE(SharesBecome("on"));
  EXPECT_TRUE(Comes([&] { return small->order() == TurnOrder::kPaced; }));
  EXPECT_TRUE(Comes([&] { return large->order() == TurnOrder::kPaced; }));
  EXPECT_TRUE(
      Comes([&] { return giver_.ReportOf(2).device_us > 0 && giver_.ReportOf(2).turns > 1; }));
  giver_.Remove(1);
  EXPECT_TRUE(Comes([&] { return large->order() == TurnOrder::kFree; }));
}

TEST_F(TurnGiverTest, AlikeOnesHaveNone) {
  Configure(TurnsConfig::Mode::kOff, TurnsConfig::Shares::kAuto);
  SKIP_WITHOUT_PAGES();
  Add("a", 100, /*is_cpu=*/false);
  Add("b", 100, /*is_cpu=*/false);
  EXPECT_TRUE(SharesBecome("off: no two accounts are at work that differ in share or sessions"));
  Add("b", 100, /*is_cpu=*/false);
  EXPECT_TRUE(SharesBecome("on"));
}

TEST_F(TurnGiverTest, TheKernelDividesProcessorsBetter) {
  Configure(TurnsConfig::Mode::kOff, TurnsConfig::Shares::kAuto, /*divides=*/true);
  SKIP_WITHOUT_PAGES();
  Add("a", 100, /*is_cpu=*/true);
  Add("b", 300, /*is_cpu=*/true);
  EXPECT_TRUE(SharesBecome("off: the kernel divides the processors"));
  // An operator may want them all the same. It holds from now on.
  Configure(TurnsConfig::Mode::kOff, TurnsConfig::Shares::kOn, /*divides=*/true);
  EXPECT_TRUE(SharesBecome("on"));
  Configure(TurnsConfig::Mode::kOff, TurnsConfig::Shares::kOff, /*divides=*/true);
  EXPECT_TRUE(Comes([&] { return workers_.front().order() == TurnOrder::kFree; }));
  EXPECT_EQ(giver_.ReportOf(1).shares, "off: by the configuration");
}

TEST_F(TurnGiverTest, WithoutSharesTurnsAreAsEver) {
  Configure(TurnsConfig::Mode::kAuto, TurnsConfig::Shares::kOff);
  SKIP_WITHOUT_PAGES();
  PlayedWorker* const first = Add("a", 100, /*is_cpu=*/false, /*has_turns=*/true);
  Add("b", 300, /*is_cpu=*/false, /*has_turns=*/true);
  EXPECT_TRUE(Comes([&] { return first->order() == TurnOrder::kGo; }));
  EXPECT_EQ(giver_.ReportOf(1).state, "on");
  EXPECT_EQ(giver_.ReportOf(1).shares, "off: by the configuration");
}

TEST_F(TurnGiverTest, NoPagesWhereNeitherIsWanted) {
  Configure(TurnsConfig::Mode::kOff, TurnsConfig::Shares::kOff);
  EXPECT_EQ(Add("a", 100, /*is_cpu=*/false), nullptr);
  EXPECT_EQ(giver_.ReportOf(1).state, "off: by the configuration");
  EXPECT_EQ(giver_.ReportOf(1).shares, "off: by the configuration");
}

}  // namespace
}  // namespace sluice::broker
