// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/driver_quirks.h"

#include <gtest/gtest.h>

namespace sluice::worker {
namespace {

DriverQuirks OfPocl(std::string_view version) {
  return QuirksOf({0x8086, "OpenCL 3.0 PoCL HSTR: cpu-x86_64-pc-linux-gnu-haswell", version});
}

bool HasAny(const DriverQuirks& quirks) {
  for (const QuirkRow& row : kQuirkRows) {
    if (quirks.*row.fact) return true;
  }
  return false;
}

// The driver's version stands first, with and without what a distribution adds.
TEST(DriverQuirksTest, MajorIsTheFirstNumber) {
  EXPECT_EQ(DriverMajor("3.1+debian"), 3);
  EXPECT_EQ(DriverMajor("6.0"), 6);
  EXPECT_EQ(DriverMajor("580.65.06"), 580);
  EXPECT_EQ(DriverMajor("git"), 0);
  EXPECT_EQ(DriverMajor(""), 0);
}

// Facts of one version alone, of it and the next, and of any.
TEST(DriverQuirksTest, FactsOfEachVersion) {
  const DriverQuirks pocl3 = OfPocl("3.1+debian");
  const DriverQuirks pocl6 = OfPocl("6.0+debian");
  const DriverQuirks pocl7 = OfPocl("7.1");
  for (const DriverQuirks& pocl : {pocl3, pocl6, pocl7}) {
    EXPECT_TRUE(pocl.aborts_on_failed_wait && pocl.fails_waits_with_minus_one && pocl.overtakes);
    EXPECT_FALSE(pocl.calls_back_late || pocl.never_says_running || pocl.waits_in_volume_fills ||
                 pocl.has_uuid_of_its_own || pocl.fails_images_of_imports || pocl.switches_slowly ||
                 pocl.kernels_end_late || pocl.prints_late);
  }
  EXPECT_TRUE(pocl3.frees_failed_commands);
  EXPECT_TRUE(pocl6.frees_failed_commands);
  EXPECT_FALSE(pocl7.frees_failed_commands);
  EXPECT_TRUE(pocl3.crashes_on_sub_buffers && pocl6.crashes_on_sub_buffers);
  EXPECT_FALSE(pocl7.crashes_on_sub_buffers);
  EXPECT_TRUE(pocl6.knows_own_svm_only && pocl7.knows_own_svm_only);
  EXPECT_FALSE(pocl3.knows_own_svm_only);
}

// A driver is known by what it says of itself, and one that is not known has no quirks.
TEST(DriverQuirksTest, DriversAreToldApart) {
  const DriverQuirks nvidia = QuirksOf({0x10de, "OpenCL 3.0 CUDA", "580.65.06"});
  EXPECT_TRUE(nvidia.calls_back_late && nvidia.never_says_running && nvidia.waits_in_volume_fills &&
              nvidia.fails_images_of_imports && nvidia.has_uuid_of_its_own &&
              nvidia.switches_slowly && nvidia.kernels_end_late && nvidia.prints_late);
  EXPECT_FALSE(nvidia.overtakes || nvidia.aborts_on_failed_wait);
  EXPECT_FALSE(QuirksOf({0x10de, "OpenCL 3.0 PoCL CUDA", "6.0"}).calls_back_late);
  EXPECT_FALSE(HasAny(QuirksOf({0x10005, "OpenCL 3.0 ", "25.0.7-2"})));
}

}  // namespace
}  // namespace sluice::worker
