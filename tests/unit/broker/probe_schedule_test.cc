// SPDX-License-Identifier: Apache-2.0
// When the broker asks for devices again.
#include "broker/probe_schedule.h"

#include <gtest/gtest.h>

namespace sluice::broker {
namespace {

constexpr int64_t kFirst = ProbeSchedule::kFirstPauseMs;
constexpr int64_t kLongest = ProbeSchedule::kLongestPauseMs;

// As long as there are none it asks again, less and less often, and for ever.
TEST(ProbeScheduleTest, AsksUntilThereAreDevices) {
  ProbeSchedule schedule;
  schedule.OnStart();
  int64_t now = 0;
  int64_t last = 0;
  for (int i = 0; i < 20; ++i) {
    const std::optional<int64_t> wait = schedule.OnResult(false, i == 0, now);
    ASSERT_TRUE(wait.has_value());
    EXPECT_GE(*wait, last);
    EXPECT_LE(*wait, kLongest);
    last = *wait;
    now += *wait;
    schedule.OnStart();
  }
  EXPECT_EQ(last, kLongest);
  EXPECT_EQ(schedule.OnResult(true, true, now), std::nullopt);
}

// A hint leads to one probe, whose result ends it.
TEST(ProbeScheduleTest, HintsLeadToOne) {
  ProbeSchedule schedule;
  schedule.OnStart();
  EXPECT_EQ(schedule.OnHint(0), std::nullopt) << "one runs";
  EXPECT_EQ(schedule.OnResult(true, true, 0), std::nullopt);
  EXPECT_EQ(schedule.OnHint(10 * kFirst), kFirst);
  EXPECT_EQ(schedule.OnHint(10 * kFirst), std::nullopt) << "one is due";
  schedule.OnStart();
  EXPECT_EQ(schedule.OnResult(true, false, 11 * kFirst), std::nullopt);
  EXPECT_NE(schedule.OnHint(12 * kFirst), std::nullopt);
}

// A tenant that crashes its workers on purpose has the machine look once a minute at last.
TEST(ProbeScheduleTest, HintsThatChangeNothingAreHeardLess) {
  ProbeSchedule schedule;
  schedule.OnStart();
  schedule.OnResult(true, true, 0);
  int64_t now = 0;
  int64_t probes = 0;
  for (constexpr int64_t kHour = 3'600'000; now < kHour; ++probes) {
    now += *schedule.OnHint(now);
    schedule.OnStart();
    schedule.OnResult(true, false, now);
  }
  EXPECT_LE(probes, 3'600'000 / kLongest + 8);
  // A hint that changes something is heard at once again, and so is the first after a quiet time.
  now += *schedule.OnHint(now);
  schedule.OnStart();
  schedule.OnResult(true, true, now);
  EXPECT_EQ(schedule.OnHint(now), kFirst);
  schedule.OnStart();
  schedule.OnResult(true, false, now);
  EXPECT_EQ(schedule.OnHint(now + 2 * kLongest), kFirst);
}

}  // namespace
}  // namespace sluice::broker
