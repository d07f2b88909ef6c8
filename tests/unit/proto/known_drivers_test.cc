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

// What PoCL 3.1 does alone, what it and 6.0 do, and what any does; other drivers none of it.
TEST(KnownDriversTest, WaysOfEachVersion) {
  const DriverWays pocl3 = WaysOf(0, kPoclDevice, "3.1+debian");
  const DriverWays pocl6 = WaysOf(0, kPoclDevice, "6.0+debian");
  const DriverWays pocl7 = WaysOf(0, kPoclDevice, "7.1+debian");
  EXPECT_TRUE(pocl3.is_pocl && pocl6.is_pocl && pocl7.is_pocl);
  EXPECT_TRUE(pocl3.frees_what_fails);
  EXPECT_FALSE(pocl6.frees_what_fails || pocl7.frees_what_fails);
  EXPECT_TRUE(pocl3.crashes_on_parts && pocl6.crashes_on_parts);
  EXPECT_FALSE(pocl7.crashes_on_parts);
  const DriverWays rusticl = WaysOf(0x10005, "OpenCL 3.0 ", "25.0.7-2");
  EXPECT_FALSE(rusticl.is_pocl || rusticl.frees_what_fails || rusticl.crashes_on_parts ||
               rusticl.knows_own_svm_only || rusticl.is_nvidia);
  EXPECT_TRUE(WaysOf(0x10de, "OpenCL 3.0 CUDA", "580.65.06").is_nvidia);
}

}  // namespace
}  // namespace sluice
