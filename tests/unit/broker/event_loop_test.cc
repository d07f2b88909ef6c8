// SPDX-License-Identifier: Apache-2.0
#include "broker/event_loop.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "broker/os/local_socket.h"

namespace sluice::broker {
namespace {

class EventLoopTest : public testing::Test {
 protected:
  void SetUp() override {
    auto loop = EventLoop::Create();
    ASSERT_TRUE(loop.ok()) << loop.status();
    loop_ = *std::move(loop);
  }
  std::unique_ptr<EventLoop> loop_;
};

// Timers fire in the order of their times, not of their making.
TEST_F(EventLoopTest, TimersFireInOrder) {
  std::string order;
  loop_->AddTimer(20, [&] { order += 'b'; });
  loop_->AddTimer(1, [&] { order += 'a'; });
  loop_->AddTimer(40, [&] { loop_->Quit(); });
  loop_->Run();
  EXPECT_EQ(order, "ab");
}

// A cancelled timer does not fire; cancelling it again, or from another timer, is harmless.
TEST_F(EventLoopTest, CancelledTimerDoesNotFire) {
  bool fired = false;
  EventLoop::TimerId timer = loop_->AddTimer(5, [&] { fired = true; });
  loop_->AddTimer(0, [&] { loop_->CancelTimer(&timer); });
  loop_->AddTimer(20, [&] { loop_->Quit(); });
  loop_->Run();
  EXPECT_FALSE(fired);
  EXPECT_EQ(timer, 0u);
  loop_->CancelTimer(&timer);
}

// A watched descriptor is reported while it can be read, and no more once unwatched.
TEST_F(EventLoopTest, WatchesDescriptors) {
  auto pair = os::CreateSocketPair();
  ASSERT_TRUE(pair.ok());
  int count = 0;
  EventLoop::WatchId watch = 0;
  watch = loop_->Watch(pair->first.get(), [&] {
    if (++count == 3) {
      loop_->Unwatch(&watch);
      loop_->AddTimer(10, [&] { loop_->Quit(); });
    }
  });
  ASSERT_TRUE(os::SendMessage(pair->second.get(), "x", 1).ok());
  loop_->Run();
  EXPECT_EQ(count, 3);
}

// A callback may remove another watch whose event is already in the same round: that one is not
// called.
TEST_F(EventLoopTest, StaleEventsAreDropped) {
  auto first = os::CreateSocketPair();
  auto second = os::CreateSocketPair();
  ASSERT_TRUE(first.ok() && second.ok());
  EventLoop::WatchId watches[2] = {0, 0};
  int calls = 0;
  const auto remove_both = [&] {
    ++calls;
    loop_->Unwatch(&watches[0]);
    loop_->Unwatch(&watches[1]);
    first->first.reset();
    second->first.reset();
    loop_->AddTimer(10, [&] { loop_->Quit(); });
  };
  watches[0] = loop_->Watch(first->first.get(), remove_both);
  watches[1] = loop_->Watch(second->first.get(), remove_both);
  ASSERT_TRUE(os::SendMessage(first->second.get(), "x", 1).ok());
  ASSERT_TRUE(os::SendMessage(second->second.get(), "x", 1).ok());
  loop_->Run();
  EXPECT_EQ(calls, 1);
}

// Tasks from other threads run on the loop's thread, each once.
TEST_F(EventLoopTest, PostedTasksRunOnTheLoop) {
  const std::thread::id loop_thread = std::this_thread::get_id();
  int count = 0;
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 100; ++j) {
        loop_->Post([&] {
          EXPECT_EQ(std::this_thread::get_id(), loop_thread);
          if (++count == 400) loop_->Quit();
        });
      }
    });
  }
  loop_->Run();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, 400);
}

// A descriptor that cannot be watched gives no watch, and unwatching that is harmless.
TEST_F(EventLoopTest, UnwatchableDescriptor) {
  EventLoop::WatchId watch = loop_->Watch(-1, [] {});
  EXPECT_EQ(watch, 0u);
  loop_->Unwatch(&watch);
}

}  // namespace
}  // namespace sluice::broker
