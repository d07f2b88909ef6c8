// SPDX-License-Identifier: Apache-2.0
#include "client_icd/session/letting_go.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

#include "client_icd/session/command_stream.h"

namespace sluice::client::sharing {
namespace {

// A call waits until all that is under way has gone, on whatever thread.
TEST(LettingGoTest, IsWaitedFor) {
  LettingGo::Await();  // Nothing is.
  std::shared_ptr<void> first = LettingGo::Begin();
  std::shared_ptr<void> second = LettingGo::Begin();
  std::atomic<int> gone{0};
  std::thread other([&] {
    for (std::shared_ptr<void>* one : {&first, &second}) {
      ++gone;
      *one = nullptr;
    }
  });
  LettingGo::Await(absl::InfiniteDuration());
  EXPECT_EQ(gone, 2);
  other.join();
}

// A thread that handles replies, or lets go itself, never waits: others wait for it.
TEST(LettingGoTest, NotWhereRepliesAreHandled) {
  const std::shared_ptr<void> mine = LettingGo::Begin();
  const CommandStream::Handling handling;
  LettingGo::Await(absl::InfiniteDuration());
}

// What is not let go of in time is given up, once for all calls, and does not count any more when
// it ends after all; what begins later is waited for.
TEST(LettingGoTest, IsGivenUp) {
  std::shared_ptr<void> stuck = LettingGo::Begin();
  LettingGo::Await(absl::ZeroDuration());
  LettingGo::Await(absl::InfiniteDuration());
  std::shared_ptr<void> later = LettingGo::Begin();
  stuck = nullptr;
  bool gone = false;
  std::thread other([&] {
    gone = true;
    later = nullptr;
  });
  LettingGo::Await(absl::InfiniteDuration());
  EXPECT_TRUE(gone);
  other.join();
}

}  // namespace
}  // namespace sluice::client::sharing
