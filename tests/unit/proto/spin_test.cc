// SPDX-License-Identifier: Apache-2.0
#include "proto/spin.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

// What is there already is found without spending any budget.
TEST(SpinTest, FindsWhatIsThere) {
  int budget = 0;
  EXPECT_TRUE(SpinUntil([] { return true; }, &budget));
  EXPECT_EQ(budget, 0);
}

// Looking that never pays costs less and less, down to nothing but a short look now and then.
TEST(SpinTest, BudgetShrinksWhileItDoesNotPay) {
  int budget = 16;
  int looks = 0;
  for (int i = 0; i < 100; ++i) {
    SpinUntil([&] { return ++looks, false; }, &budget);
  }
  EXPECT_LT(budget, 2);
  looks = 0;
  for (int i = 0; i < 10; ++i) SpinUntil([&] { return ++looks, false; }, &budget);
  // Each call looks once; at most one of them looks again.
  EXPECT_LT(looks, 100000);
}

// Looking that pays is allowed more time, up to the longest spin.
TEST(SpinTest, BudgetGrowsWhileItPays) {
  if (!MaySpin()) GTEST_SKIP() << "one processor: there is no spinning here";
  int budget = 1;
  for (int i = 0; i < 100; ++i) {
    int looks = 0;
    SpinUntil([&] { return ++looks > 2; }, &budget);
  }
  EXPECT_EQ(budget, 16);
}

}  // namespace
}  // namespace sluice
