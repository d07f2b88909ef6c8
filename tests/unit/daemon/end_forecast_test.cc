// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/queues/end_forecast.h"

#include <gtest/gtest.h>

namespace sluice::worker {
namespace {

constexpr int64_t kMs = 1'000'000;

// Looks at work that takes `took`, from `start` on, as the worker does. The time slept, and when
// the end was seen.
struct Seen {
  int64_t slept = 0;
  int64_t late = 0;
  int wake_ups = 0;
};
Seen Watch(EndForecast* forecast, int64_t start, int64_t took) {
  constexpr int64_t kLook = 2'000;
  constexpr int64_t kSleepIsLate = 60'000;
  Seen seen;
  forecast->NoteWork(start);
  for (int64_t now = start;;) {
    if (now - start >= took) {
      forecast->NoteEnd(now);
      forecast->NoteNoWork();
      seen.late = now - start - took;
      return seen;
    }
    const int64_t pause = forecast->PauseNs(now);
    if (pause != 0) {
      now += pause + kSleepIsLate;
      seen.slept += pause + kSleepIsLate;
    } else {
      seen.wake_ups += forecast->TakeWakeUp(now);
      now += kLook;
    }
  }
}

TEST(EndForecastTest, ShortWorkIsNotSleptOver) {
  EndForecast forecast;
  for (int i = 0; i < 3; ++i) {
    const Seen seen = Watch(&forecast, (i + 1) * 100 * kMs, kMs / 8);
    EXPECT_EQ(seen.slept, 0);
    EXPECT_EQ(seen.wake_ups, 0);
  }
}

// The client is woken before each end but the first.
TEST(EndForecastTest, ClientIsWokenBeforeTheEnd) {
  for (const int64_t took : {kMs / 2, kMs, 5 * kMs}) {
    EndForecast forecast;
    for (int i = 0; i < 4; ++i) {
      const Seen seen = Watch(&forecast, (i + 1) * 1000 * kMs, took);
      EXPECT_EQ(seen.slept, 0);
      EXPECT_EQ(seen.wake_ups, i == 0 ? 0 : 1) << took;
    }
  }
}

// The first time it is slept over, and seen late; from the second on it is seen in time, and most
// of it has been slept all the same.
TEST(EndForecastTest, RepeatedWorkIsSeenInTime) {
  for (const int64_t took : {30 * kMs, 100 * kMs}) {
    EndForecast forecast;
    const Seen first = Watch(&forecast, kMs, took);
    EXPECT_GT(first.slept, took / 4);
    for (int i = 1; i < 5; ++i) {
      const int64_t jitter = i % 2 == 0 ? took / 100 : 0;
      const Seen seen = Watch(&forecast, kMs + 1000 * i * kMs, took + jitter);
      EXPECT_LT(seen.late, 5'000) << took;
      EXPECT_GT(seen.slept, took / 4) << took;
      if (i > 1) {  // The first was seen late, and remembered so.
        EXPECT_EQ(seen.wake_ups, 1) << took;
      }
    }
  }
}

// Two kinds of work in turn, and one that is new among them.
TEST(EndForecastTest, SeveralKindsAreRemembered) {
  EndForecast forecast;
  int64_t start = kMs;
  for (int i = 0; i < 12; ++i) {
    const int64_t took = i % 2 == 0 ? 23 * kMs : 51 * kMs;
    const Seen seen = Watch(&forecast, start, took);
    if (i >= 2) {
      EXPECT_LT(seen.late, 5'000) << i;
    }
    start += 1000 * kMs;
  }
  EXPECT_GT(Watch(&forecast, start, 90 * kMs).late, 0);
  EXPECT_LT(Watch(&forecast, start + 1000 * kMs, 23 * kMs).late, 5'000);
}

// While something is held for long, other commands are looked after at once.
TEST(EndForecastTest, CommandsAreLookedAfterAtOnce) {
  EndForecast forecast;
  forecast.NoteCommand(kMs);
  forecast.NoteWork(kMs);
  const int64_t later = 1000 * kMs;
  EXPECT_GT(forecast.PauseNs(later), kMs);
  forecast.NoteCommand(later);
  EXPECT_EQ(forecast.PauseNs(later + kMs / 10), 0);
  EXPECT_GT(forecast.PauseNs(later + 5 * kMs), 0);
}

// Also where it must not look on.
TEST(EndForecastTest, SleepsBeginShort) {
  EndForecast forecast;
  forecast.NoteCommand(1000 * kMs);
  EXPECT_EQ(forecast.SleepNs(1000 * kMs), EndForecast::kShortestPauseNs);
}

// Nothing is known of the time while there was no work.
TEST(EndForecastTest, IdleTimeIsNoWork) {
  EndForecast forecast;
  forecast.NoteWork(kMs);
  forecast.NoteEnd(2 * kMs);
  forecast.NoteNoWork();
  forecast.NoteWork(50 * kMs);
  EXPECT_EQ(forecast.PauseNs(50 * kMs + 100'000), 0);
}

}  // namespace
}  // namespace sluice::worker
