// SPDX-License-Identifier: Apache-2.0
#include "broker/children/allocator_link.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "broker/fair_queue.h"

namespace sluice::broker {
namespace {

std::string Drain(FairQueue<int>* queue) {
  std::string served;
  while (!queue->empty()) served += std::to_string(queue->Pop());
  return served;
}

// One of each in turn, each one's own in its order.
TEST(FairQueueTest, TakesTurns) {
  FairQueue<int> queue;
  for (const int item : {1, 2, 3}) queue.Push("a", item);
  for (const int item : {4, 5}) queue.Push("b", item);
  queue.Push("c", 6);
  EXPECT_EQ(queue.CountOf("a"), 3u);
  EXPECT_EQ(queue.CountOf("d"), 0u);
  EXPECT_EQ(Drain(&queue), "146253");
}

// A caller that comes while one is served is next, also before a second request of the one served.
TEST(FairQueueTest, NewcomersAreBeforeWhoWasServed) {
  FairQueue<int> queue;
  queue.Push("a", 1);
  queue.Push("a", 2);
  EXPECT_EQ(queue.Pop(), 1);
  queue.Push("b", 3);
  EXPECT_EQ(queue.Pop(), 3);
  EXPECT_EQ(queue.Pop(), 2);
  queue.Push("a", 4);
  queue.Push("b", 5);
  EXPECT_EQ(Drain(&queue), "54");
}

// With the allocator of the build, which lies beside this program.
class AllocatorLinkTest : public testing::Test {
 protected:
  void SetUp() override {
    auto loop = EventLoop::Create();
    ASSERT_TRUE(loop.ok()) << loop.status();
    loop_ = *std::move(loop);
    link_ = std::make_unique<AllocatorLink>(loop_.get());
  }

  void Ask(const std::string& identity) {
    ResourceShape shape;
    shape.size_bytes = 4096;
    ++asked_;
    link_->Allocate(identity, wire::ResourceBacking::kMemfd, shape,
                    [this, identity](absl::StatusOr<AllocatedMemory> memory) {
                      answered_.push_back(identity);
                      statuses_.push_back(memory.status());
                      if (answered_.size() == asked_) loop_->Quit();
                    });
  }

  std::unique_ptr<EventLoop> loop_;
  std::unique_ptr<AllocatorLink> link_;
  size_t asked_ = 0;
  std::vector<std::string> answered_;
  std::vector<absl::Status> statuses_;
};

// A caller with one request waits for one of another's at most, however many those are.
TEST_F(AllocatorLinkTest, IsFairBetweenIdentities) {
  for (int i = 0; i < 50; ++i) Ask("many");
  Ask("one");
  loop_->Run();
  const auto found = std::find(answered_.begin(), answered_.end(), "one");
  EXPECT_LE(found - answered_.begin(), 1);
  for (const absl::Status& status : statuses_) EXPECT_TRUE(status.ok()) << status;
}

// A caller with too many requests at once is told so, and takes nobody else's room.
TEST_F(AllocatorLinkTest, RoomIsOfEachIdentity) {
  for (int i = 0; i < 200; ++i) Ask("many");
  EXPECT_GT(answered_.size(), 0u);
  for (const absl::Status& status : statuses_) EXPECT_TRUE(absl::IsResourceExhausted(status));
  const size_t refused = answered_.size();
  Ask("one");
  EXPECT_EQ(answered_.size(), refused);
  loop_->Run();
  const auto found = std::find(answered_.begin(), answered_.end(), "one");
  ASSERT_NE(found, answered_.end());
  EXPECT_TRUE(statuses_[static_cast<size_t>(found - answered_.begin())].ok());
}

// A caller of an allocator that is gone is told that, not that its own connection is.
TEST_F(AllocatorLinkTest, TellsOfItsEndAsItsOwn) {
  Ask("some");
  loop_->Run();
  std::ifstream children("/proc/thread-self/children");
  pid_t allocator = 0;
  ASSERT_TRUE(children >> allocator);
  ASSERT_EQ(::kill(allocator, SIGKILL), 0);
  siginfo_t info;
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(allocator), &info, WEXITED | WNOWAIT), 0);
  Ask("some");  // The loop, which does not run, has not seen it.
  ASSERT_EQ(statuses_.size(), 2u);
  EXPECT_TRUE(absl::IsInternal(statuses_[1])) << statuses_[1];
  EXPECT_EQ(statuses_[1].message(), "the daemon's allocator has ended; try again in a second");
}

// A request that waits is answered when it stops, not forgotten.
TEST_F(AllocatorLinkTest, StopAnswersWhatWaits) {
  for (int i = 0; i < 3; ++i) Ask("some");
  link_->Stop();
  EXPECT_EQ(answered_.size(), asked_);
  for (const absl::Status& status : statuses_) EXPECT_TRUE(absl::IsUnavailable(status)) << status;
}

}  // namespace
}  // namespace sluice::broker
