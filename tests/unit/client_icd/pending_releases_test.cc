// SPDX-License-Identifier: Apache-2.0
#include "client_icd/session/pending_releases.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

#include "client_icd/session/command_stream.h"

namespace sluice::client::sharing {
namespace {

// A call waits until all that is under way has gone, on whatever thread.
TEST(PendingReleasesTest, IsWaitedFor) {
  PendingReleases::Await();  // Nothing is.
  std::shared_ptr<void> first = PendingReleases::Begin();
  std::shared_ptr<void> second = PendingReleases::Begin();
  std::atomic<int> gone{0};
  std::thread other([&] {
    for (std::shared_ptr<void>* one : {&first, &second}) {
      ++gone;
      *one = nullptr;
    }
  });
  PendingReleases::Await(absl::InfiniteDuration());
  EXPECT_EQ(gone, 2);
  other.join();
}

// A thread that handles replies, or lets go itself, never waits: others wait for it.
TEST(PendingReleasesTest, NotWhereRepliesAreHandled) {
  const std::shared_ptr<void> mine = PendingReleases::Begin();
  const CommandStream::Handling handling;
  PendingReleases::Await(absl::InfiniteDuration());
}

// A release that does not end in time is given up, once for all calls, and does not count any more
// when it ends after all; one that begins later is waited for.
TEST(PendingReleasesTest, IsGivenUp) {
  std::shared_ptr<void> stuck = PendingReleases::Begin();
  PendingReleases::Await(absl::ZeroDuration());
  PendingReleases::Await(absl::InfiniteDuration());
  std::shared_ptr<void> later = PendingReleases::Begin();
  stuck = nullptr;
  bool gone = false;
  std::thread other([&] {
    gone = true;
    later = nullptr;
  });
  PendingReleases::Await(absl::InfiniteDuration());
  EXPECT_TRUE(gone);
  other.join();
}

}  // namespace
}  // namespace sluice::client::sharing
