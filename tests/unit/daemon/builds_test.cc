// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/programs/builds.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/synchronization/notification.h"

namespace sluice::worker {
namespace {

// Work is done one after the other, in the order posted, and each is told of.
TEST(BuildsTest, InOrder) {
  std::vector<std::string> seen;
  absl::Notification last;
  Builds builds(60'000);
  for (int i = 0; i < 3; ++i) {
    Builds::Work work;
    work.run = [&, i] {
      seen.push_back("run " + std::to_string(i));
      return [&, i] {
        seen.push_back("tell " + std::to_string(i));
        if (i == 2) last.Notify();
      };
    };
    EXPECT_TRUE(builds.Post(std::move(work)));
  }
  last.WaitForNotification();
  EXPECT_EQ(seen,
            (std::vector<std::string>{"run 0", "tell 0", "run 1", "tell 1", "run 2", "tell 2"}));
}

// Work that takes too long is given up, with the reason; then the session is ended; and when the
// driver comes back after all, nothing is told a second time.
TEST(BuildsTest, GivesUp) {
  absl::Notification ended;
  absl::Notification returned;
  absl::Notification may_return;
  std::string given_up;
  bool told = false;
  {
    Builds builds(50);
    builds.set_on_overrun([&](const std::string& why) {
      EXPECT_EQ(why, given_up);
      ended.Notify();
    });
    Builds::Work work;
    work.run = [&] {
      may_return.WaitForNotification();
      returned.Notify();
      return [&] { told = true; };
    };
    work.give_up = [&](const std::string& why) { given_up = why; };
    EXPECT_TRUE(builds.Post(std::move(work)));
    ended.WaitForNotification();
    EXPECT_NE(given_up.find("build_time_ms = 50"), std::string::npos);
    may_return.Notify();
    returned.WaitForNotification();
  }
  EXPECT_FALSE(told);
}

// The time of waiting for one's turn does not count, nor does any without a limit; and no client
// can make more wait than there is a bound for.
TEST(BuildsTest, Bounded) {
  absl::Notification go_on;
  Builds builds(0);
  Builds::Work first;
  first.run = [&] {
    go_on.WaitForNotification();
    return [] {};
  };
  EXPECT_TRUE(builds.Post(std::move(first)));
  size_t waiting = 0;
  while (waiting < 2 * Builds::kMaxWaiting && builds.Post({[] { return [] {}; }, nullptr}))
    ++waiting;
  EXPECT_GE(waiting, Builds::kMaxWaiting - 1);
  EXPECT_LE(waiting, Builds::kMaxWaiting);
  go_on.Notify();
}

}  // namespace
}  // namespace sluice::worker
