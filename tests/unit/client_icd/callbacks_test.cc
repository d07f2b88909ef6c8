// SPDX-License-Identifier: Apache-2.0
#include "client_icd/session/callbacks.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <memory>
#include <utility>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "client_icd/session/command_stream.h"

namespace sluice::client {
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

// Objects that a callback kept are let go of as by a thread that handles replies; the callback's
// own calls are not made so.
TEST(CallbacksTest, LetsGoAsWhereRepliesAreHandled) {
  Callbacks callbacks;
  absl::Notification gone;
  bool handles_when_gone = false, handles_in_callback = true;
  std::shared_ptr<void> kept(&handles_when_gone, [&gone](void* handles) {
    *static_cast<bool*>(handles) = CommandStream::HandlesHere();
    gone.Notify();
  });
  callbacks.Add([kept = std::move(kept), &handles_in_callback] {
    handles_in_callback = CommandStream::HandlesHere();
  });
  ASSERT_TRUE(gone.WaitForNotificationWithTimeout(kPatience));
  EXPECT_FALSE(handles_in_callback);
  EXPECT_TRUE(handles_when_gone);
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
}  // namespace sluice::client
