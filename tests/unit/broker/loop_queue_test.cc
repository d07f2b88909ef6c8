// SPDX-License-Identifier: Apache-2.0
#include "broker/loop_queue.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace sluice::broker {
namespace {

constexpr uint64_t kGreedy = 1;  // Connections.
constexpr uint64_t kModest = 2;

class LoopQueueTest : public testing::Test {
 protected:
  void SetUp() override {
    auto loop = EventLoop::Create();
    ASSERT_TRUE(loop.ok()) << loop.status();
    loop_ = *std::move(loop);
    queue_ = std::make_unique<LoopQueue>(loop_.get());
  }
  // A task that leaves `mark` in the log.
  void Post(uint64_t connection, char mark) {
    EXPECT_TRUE(queue_->Post(connection, [this, mark] { log_ += mark; }));
  }
  // Runs until a task that comes behind all that was posted for the connection.
  void RunUntilDone(uint64_t connection) {
    EXPECT_TRUE(queue_->Post(connection, [this] { loop_->Quit(); }));
    loop_->Run();
  }

  std::unique_ptr<EventLoop> loop_;
  std::unique_ptr<LoopQueue> queue_;
  std::string log_;
};

// One task of each connection is run in turn, however many one has posted before the other came;
// each one's own keep their order.
TEST_F(LoopQueueTest, ConnectionsTakeTurns) {
  for (const char mark : {'a', 'b', 'c', 'd', 'e', 'f'}) Post(kGreedy, mark);
  for (const char mark : {'1', '2', '3'}) Post(kModest, mark);
  RunUntilDone(kGreedy);
  EXPECT_EQ(log_, "a1b2c3def");
}

// The loop's other work has its turn while one connection's tasks still wait.
TEST_F(LoopQueueTest, TheLoopIsNotHeld) {
  for (int i = 0; i < 4; ++i) {
    queue_->Post(kGreedy, [this] {
      const int64_t end_ms = MonotonicMs() + LoopQueue::kMostMsAtOnce;
      while (MonotonicMs() < end_ms) {
      }
      log_ += 'a';
      if (log_ == "a") loop_->Post([this] { log_ += '!'; });
    });
  }
  RunUntilDone(kGreedy);
  EXPECT_EQ(log_, "a!aaa");
}

// Calls that wait are bounded, of one connection and of all, and yet each has room for a few; what
// has run makes room again. The end of a call always finds some.
TEST_F(LoopQueueTest, CallsAreBounded) {
  const auto nothing = [] {};
  const auto fill = [&](uint64_t connection) {
    size_t calls = 0;
    while (queue_->PostCall(connection, nothing) == LoopQueue::Posted::kYes) ++calls;
    return calls;
  };
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(fill(kGreedy), LoopQueue::kMostOfOne);
    EXPECT_EQ(queue_->PostCall(kGreedy, nothing), LoopQueue::Posted::kNoRoom);
    size_t in_all = LoopQueue::kMostOfOne;
    for (uint64_t connection = 100; connection < 163; ++connection) in_all += fill(connection);
    EXPECT_EQ(in_all, LoopQueue::kMostShared + 64 * LoopQueue::kAlwaysRoom);
    EXPECT_EQ(fill(kModest), LoopQueue::kAlwaysRoom);
    log_.clear();
    Post(kGreedy, 'x');
    RunUntilDone(kGreedy);
    EXPECT_EQ(log_, "x");
  }
  queue_->CloseAndRun();
  EXPECT_EQ(queue_->PostCall(kModest, nothing), LoopQueue::Posted::kClosed);
}

// A job that waits when the queue is closed is run there, in turn; nothing more is taken.
TEST_F(LoopQueueTest, ClosingRunsWhatWaits) {
  for (const char mark : {'a', 'b', 'c'}) Post(kGreedy, mark);
  Post(kModest, '1');
  queue_->CloseAndRun();
  EXPECT_EQ(log_, "a1bc");
  EXPECT_FALSE(queue_->Post(kModest, [this] { log_ += '2'; }));
  loop_->Post([this] { loop_->Quit(); });
  loop_->Run();
  EXPECT_EQ(log_, "a1bc");
}

}  // namespace
}  // namespace sluice::broker
