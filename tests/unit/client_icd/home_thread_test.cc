// SPDX-License-Identifier: Apache-2.0
#include "client_icd/base/home_thread.h"

#include <gtest/gtest.h>

#include <thread>

namespace sluice::client {
namespace {

void Call() { const HomeThread::ErrandsAfter call; }

// An errand left to a thread is done by its next call, once, and by no other thread's.
TEST(HomeThreadTest, DoesWhatIsLeftToIt) {
  const auto home = std::make_shared<HomeThread>();
  int done = 0;
  std::thread([&] {
    HomeThread::Leave(home, [&done] { ++done; });
    HomeThread::Leave(home, [&done] { ++done; });
    Call();
  }).join();
  EXPECT_EQ(done, 0);
  Call();
  EXPECT_EQ(done, 2);
  Call();
  EXPECT_EQ(done, 2);
}

// Objects that an errand keeps are let go of on that thread too, and it may make calls of its own.
TEST(HomeThreadTest, LetsGoOfWhatErrandsKeep) {
  const auto home = std::make_shared<HomeThread>();
  std::thread::id gone_on;
  std::shared_ptr<void> kept(&gone_on, [](void* id) {
    Call();
    *static_cast<std::thread::id*>(id) = std::this_thread::get_id();
  });
  std::thread([&] { HomeThread::Leave(home, [kept = std::move(kept)] {}); }).join();
  EXPECT_EQ(gone_on, std::thread::id());
  Call();
  EXPECT_EQ(gone_on, std::this_thread::get_id());
}

// Where the home moves to another thread, what was left to it before moves along.
TEST(HomeThreadTest, MovesWithItsErrands) {
  const auto home = std::make_shared<HomeThread>();
  std::thread::id done_on;
  HomeThread::Leave(home, [&done_on] { done_on = std::this_thread::get_id(); });
  std::thread other([&] {
    home->BindToThisThread();
    Call();
    EXPECT_EQ(done_on, std::this_thread::get_id());
  });
  other.join();
}

}  // namespace
}  // namespace sluice::client
