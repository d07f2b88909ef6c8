// SPDX-License-Identifier: Apache-2.0
#include "proto/known_drivers.h"

#include "gtest/gtest.h"

namespace sluice {
namespace {

constexpr std::string_view kPoclDevice = "OpenCL 3.0 PoCL HSTR: cpu-x86_64-pc-linux-gnu-haswell";

// PoCL's version stands in the driver's, with and without what a distribution adds.
TEST(KnownDriversTest, MajorIsTheFirstNumber) {
  EXPECT_EQ(DriverMajor("3.1+debian"), 3);
  EXPECT_EQ(DriverMajor("6.0"), 6);
  EXPECT_EQ(DriverMajor("580.65.06"), 580);
  EXPECT_EQ(DriverMajor("git"), 0);
  EXPECT_EQ(DriverMajor(""), 0);
}

// Only PoCL after 3.1 knows no shared memory but its own.
TEST(KnownDriversTest, KnowsOwnSvmOnly) {
  EXPECT_FALSE(KnowsOwnSvmOnly(kPoclDevice, "3.1+debian"));
  EXPECT_TRUE(KnowsOwnSvmOnly(kPoclDevice, "6.0"));
  EXPECT_TRUE(KnowsOwnSvmOnly(kPoclDevice, "7.1"));
  EXPECT_FALSE(KnowsOwnSvmOnly("OpenCL 3.0 ", "25.0.7-2"));
}

}  // namespace
}  // namespace sluice
