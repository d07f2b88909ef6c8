// SPDX-License-Identifier: Apache-2.0
#include "proto/spin.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

// What is there already is found without spending any budget.
TEST(SpinTest, FindsWhatIsThere) {
  AdaptiveSpin spin;
  EXPECT_TRUE(spin.Until([] { return true; }));
  EXPECT_EQ(spin.budget_ns(), 0);
}

// Looking that never pays costs less and less, down to nothing but a short look now and then.
TEST(SpinTest, BudgetShrinksWhileItDoesNotPay) {
  AdaptiveSpin spin;
  for (int i = 0; i < 10; ++i) spin.Until([] { return false; });
  EXPECT_EQ(spin.budget_ns(), 0);
  int waits_with_one_look = 0;
  for (int i = 0; i < 2 * AdaptiveSpin::kWaitsBetweenTries; ++i) {
    int looks = 0;
    spin.Until([&] { return ++looks, false; });
    if (looks == 1) ++waits_with_one_look;
  }
  // At most the tries, and the shrinking that follows each, look more often.
  EXPECT_GE(waits_with_one_look, AdaptiveSpin::kWaitsBetweenTries);
}

// Looking that pays is allowed more time, up to the longest spin.
TEST(SpinTest, BudgetGrowsWhileItPays) {
  if (!MaySpin()) GTEST_SKIP() << "one processor: there is no spinning here";
  AdaptiveSpin spin;
  for (int i = 0; i < 1000 && spin.budget_ns() < AdaptiveSpin::kMostNs; ++i) {
    int looks = 0;
    spin.Until([&] { return ++looks > 2; });
  }
  EXPECT_EQ(spin.budget_ns(), AdaptiveSpin::kMostNs);
}

// A look during which the thread was off the processor is the last for many waits.
TEST(SpinTest, StopsWhenTheProcessorIsLost) {
  if (!MaySpin()) GTEST_SKIP() << "one processor: there is no spinning here";
  AdaptiveSpin spin;
  for (int i = 0; i < 1000 && spin.budget_ns() < AdaptiveSpin::kMostNs; ++i) {
    int looks = 0;
    spin.Until([&] { return ++looks > 2; });
  }
  int looks = 0;
  EXPECT_FALSE(spin.Until([&] {
    // The second look takes as long as a loss of the processor does.
    const int64_t end = MonotonicNs() + (++looks == 2 ? 2 * AdaptiveSpin::kLossNs : 0);
    while (MonotonicNs() < end) {
    }
    return false;
  }));
  EXPECT_EQ(spin.budget_ns(), 0);
  for (int i = 0; i < AdaptiveSpin::kWaitsAfterLoss; ++i) {
    looks = 0;
    spin.Until([&] { return ++looks, false; });
    EXPECT_EQ(looks, 1);
  }
}

}  // namespace
}  // namespace sluice
