// SPDX-License-Identifier: Apache-2.0
#include "client_icd/callbacks.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

namespace sluice {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(20);

bool IsBlocked(int signal) {
  sigset_t mask;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  return ::sigismember(&mask, signal) == 1;
}

// A callback that ends its thread ends no other callback: neither one that waits by then, nor one
// that is added later.
TEST(CallbacksTest, OutliveTheirThread) {
  Callbacks callbacks;
  for (int round = 0; round < 20; ++round) {
    absl::Notification added, ran;
    callbacks.Add([&added] {
      added.WaitForNotification();
      ::pthread_exit(nullptr);
    });
    callbacks.Add([] { ::pthread_exit(nullptr); });
    callbacks.Add([&ran] { ran.Notify(); });
    added.Notify();
    ASSERT_TRUE(ran.WaitForNotificationWithTimeout(kPatience)) << round;
    absl::Notification last;
    callbacks.Add([] { ::pthread_exit(nullptr); });
    callbacks.Add([&last] { last.Notify(); });
    ASSERT_TRUE(last.WaitForNotificationWithTimeout(kPatience)) << round;
  }
}

int raised = 0;

// Callbacks have the signal mask of the thread that made the session, so that what they raise
// reaches them at once.
TEST(CallbacksTest, HaveTheirMakersSignals) {
  sigset_t one, before;
  ::sigemptyset(&one);
  ::sigaddset(&one, SIGUSR1);
  ::pthread_sigmask(SIG_BLOCK, &one, &before);
  struct sigaction action = {}, old_action;
  action.sa_handler = [](int) { ++raised; };
  ::sigaction(SIGUSR2, &action, &old_action);
  {
    Callbacks callbacks;
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    bool usr1_blocked = false, term_blocked = true;
    int seen = 0;
    absl::Notification ran;
    callbacks.Add([&] {
      usr1_blocked = IsBlocked(SIGUSR1);
      term_blocked = IsBlocked(SIGTERM);
      ::raise(SIGUSR2);
      seen = raised;
      ran.Notify();
    });
    ASSERT_TRUE(ran.WaitForNotificationWithTimeout(kPatience));
    EXPECT_TRUE(usr1_blocked);
    EXPECT_FALSE(term_blocked);
    EXPECT_EQ(seen, 1);
  }
  ::sigaction(SIGUSR2, &old_action, nullptr);
}

// Jobs of the driver's own get no signal.
TEST(CallbacksTest, OtherJobsHaveSignalsBlocked) {
  JobThread thread("sluice-test");
  bool blocked = false;
  absl::Notification ran;
  thread.Add([&] {
    blocked = IsBlocked(SIGTERM);
    ran.Notify();
  });
  ASSERT_TRUE(ran.WaitForNotificationWithTimeout(kPatience));
  EXPECT_TRUE(blocked);
}

}  // namespace
}  // namespace sluice
