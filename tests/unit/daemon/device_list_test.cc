// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/device_list.h"

#include <gtest/gtest.h>

#include "tests/fake_cl/fake_cl.h"

namespace sluice::worker {
namespace {

// Ids count all devices, also those that are not allowed: a change of policy moves none.
TEST(DeviceListTest, AllowListMovesNoId) {
  fake::FakeCl::Install();
  const auto all = ListRealDevices("");
  ASSERT_TRUE(all.ok());
  ASSERT_EQ(all->size(), 1u);
  ASSERT_EQ(all->at(0).devices.size(), 2u);
  EXPECT_TRUE(all->at(0).devices[0].is_cpu);
  const auto gpus = ListRealDevices("nothing,*GPU");
  ASSERT_EQ(gpus->size(), 1u);
  ASSERT_EQ(gpus->at(0).devices.size(), 1u);
  EXPECT_EQ(gpus->at(0).devices[0].id, 2u);
  EXPECT_TRUE(ListRealDevices("nothing")->empty());
}

}  // namespace
}  // namespace sluice::worker
