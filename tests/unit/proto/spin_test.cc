// SPDX-License-Identifier: Apache-2.0
#include "proto/spin.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace sluice::wire {
namespace {

// A thing that is there already is found without spending any budget.
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
  if (HasOneProcessor()) GTEST_SKIP() << "one processor: each look may lose it";
  AdaptiveSpin spin;
  for (int i = 0; i < 1000 && spin.budget_ns() < AdaptiveSpin::kMostNs; ++i) {
    int looks = 0;
    spin.Until([&] { return ++looks > 2; });
  }
  EXPECT_EQ(spin.budget_ns(), AdaptiveSpin::kMostNs);
}

// A patient one looks long enough for a device's answer from the first wait on, and longer while it
// pays; and stops as well if it does not.
TEST(SpinTest, PatientOneLooksLonger) {
  if (HasOneProcessor()) GTEST_SKIP() << "one processor: each look may lose it";
  AdaptiveSpin spin;
  spin.BePatient();
  const int64_t start = MonotonicNs();
  const int64_t answer = start + AdaptiveSpin::kPatientFirstNs / 2;
  const bool seen = spin.Until([&] { return MonotonicNs() >= answer; });
  // Unless the thread was off the processor meanwhile, which ends the spin.
  if (seen && MonotonicNs() - start < AdaptiveSpin::kLossNs) {
    EXPECT_GT(spin.budget_ns(), AdaptiveSpin::kPatientFirstNs);
  }
  for (int i = 0; i < 1000 && spin.budget_ns() < AdaptiveSpin::kPatientMostNs; ++i) {
    int looks = 0;
    spin.Until([&] { return ++looks > 2; });
  }
  EXPECT_EQ(spin.budget_ns(), AdaptiveSpin::kPatientMostNs);
  for (int i = 0; i < 10; ++i) spin.Until([] { return false; });
  EXPECT_EQ(spin.budget_ns(), 0);
}

// A patient one learns how long an answer takes that came after it had gone to sleep; not from one
// that takes too long, and an impatient one not at all.
TEST(SpinTest, PatientOneLearnsFromWhatItMissed) {
  if (HasOneProcessor()) GTEST_SKIP() << "one processor: each look may lose it";
  for (const bool patient : {true, false}) {
    bool learned = false;
    for (int i = 0; i < 100 && !learned; ++i) {
      AdaptiveSpin spin;
      if (patient) spin.BePatient();
      const int64_t start = MonotonicNs();
      const bool missed = !spin.Until([] { return false; });
      spin.NoteCame();
      // Unless the thread was off the processor for long, or lost it while it spun.
      if (!missed || MonotonicNs() - start >= AdaptiveSpin::kPatientMostNs) continue;
      learned = patient ? spin.budget_ns() >= AdaptiveSpin::kPatientFirstNs
                        : spin.budget_ns() < AdaptiveSpin::kFirstNs;
      if (!patient) {
        ASSERT_TRUE(learned);
      }
    }
    EXPECT_TRUE(learned) << (patient ? "patient" : "impatient");
  }
}

// Where wake-ups are slow, by what their bringers say, spinning may take longer; what they cannot
// have meant changes nothing.
TEST(SpinTest, SpinsAsLongAsAWakeUpTakes) {
  if (HasOneProcessor()) GTEST_SKIP() << "one processor: each look may lose it";
  constexpr int64_t kSlowNs = 40'000;
  for (const bool meant : {true, false}) {
    AdaptiveSpin spin;
    for (int i = 0; i < 100; ++i) {
      // The thread may lose the processor before the call: what is to come stays to come.
      spin.NoteCame(meant ? MonotonicNs() - kSlowNs : MonotonicNs() + 1'000'000'000);
      if (!meant) spin.NoteCame(MonotonicNs() - 2 * AdaptiveSpin::kMostWakeUpNs);
    }
    const int64_t enough = meant ? 2 * kSlowNs : AdaptiveSpin::kMostNs;
    for (int i = 0; i < 1000 && spin.budget_ns() < enough; ++i) {
      int looks = 0;
      spin.Until([&] { return ++looks > 2; });
    }
    if (meant) {
      EXPECT_GE(spin.budget_ns(), enough);
      EXPECT_LE(spin.budget_ns(), 2 * AdaptiveSpin::kMostWakeUpNs);
    } else {
      EXPECT_EQ(spin.budget_ns(), AdaptiveSpin::kMostNs);
    }
  }
}

// Another thread's work is found without a sleep if both have one processor.
TEST(SpinTest, LetsTheBringerRun) {
  if (!HasOneProcessor()) GTEST_SKIP() << "for one processor: SpinTest.OnOneProcessor runs it";
  constexpr int kRounds = 200;
  std::atomic<int> asked = 0;
  std::atomic<int> answered = 0;
  std::thread bringer([&] {
    for (int round = 1; round <= kRounds; ++round) {
      while (asked.load() < round) os::LetOthersRun();
      answered.store(round);
    }
  });
  int found = 0;
  for (int round = 1; round <= kRounds; ++round) {
    AdaptiveSpin spin;
    asked.store(round);
    if (spin.Until([&] { return answered.load() == round; })) ++found;
    while (answered.load() < round) os::LetOthersRun();
  }
  bringer.join();
  EXPECT_GT(found, 0);  // Most, where nothing else runs.
}

// A look during which the thread was off the processor is the last for many waits.
TEST(SpinTest, StopsWhenTheProcessorIsLost) {
  if (HasOneProcessor()) GTEST_SKIP() << "one processor: each look may lose it";
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
}  // namespace sluice::wire
