// SPDX-License-Identifier: Apache-2.0
#include "client_icd/base/map_shadow.h"

#include <gtest/gtest.h>

namespace sluice::client {
namespace {

TEST(ShadowPoolTest, LendsWhatWasGivenBack) {
  const auto pool = std::make_shared<ShadowPool>();
  std::shared_ptr<Shadow> first = pool->Get(1 << 20);
  ASSERT_NE(first, nullptr);
  const std::shared_ptr<Shadow> second = pool->Get(1 << 20);
  ASSERT_NE(second, nullptr);
  EXPECT_NE(first->data(), second->data());
  first->data()[0] = 42;
  uint8_t* const data = first->data();
  first.reset();
  const std::shared_ptr<Shadow> larger = pool->Get((1 << 20) + 1);
  ASSERT_NE(larger, nullptr);
  EXPECT_NE(larger->data(), data);
  const std::shared_ptr<Shadow> again = pool->Get(4096);
  EXPECT_EQ(again->data(), data);
  EXPECT_EQ(again->bytes(), size_t{1} << 20);
  EXPECT_EQ(again->data()[0], 42);
}

// The larger of two is the spare one, and none that is very large: such memory would be missed.
TEST(ShadowPoolTest, KeepsOneWithinItsLimit) {
  const auto pool = std::make_shared<ShadowPool>();
  std::shared_ptr<Shadow> small = pool->Get(4096);
  std::shared_ptr<Shadow> large = pool->Get(8192);
  std::shared_ptr<Shadow> huge = pool->Get(ShadowPool::kMaxSpareBytes + 1);
  ASSERT_TRUE(small != nullptr && large != nullptr && huge != nullptr);
  uint8_t* const data = large->data();
  large.reset();
  small.reset();
  huge.reset();
  EXPECT_EQ(pool->Get(4096)->bytes(), 8192u);
  EXPECT_EQ(pool->Get(8192)->data(), data);
  EXPECT_EQ(pool->Get(8193)->bytes(), 8193u);
}

TEST(ShadowPoolTest, ShadowsOutliveIt) {
  auto pool = std::make_shared<ShadowPool>();
  const std::shared_ptr<Shadow> shadow = pool->Get(4096);
  ASSERT_NE(shadow, nullptr);
  pool.reset();
  shadow->data()[4095] = 1;
}

}  // namespace
}  // namespace sluice::client
