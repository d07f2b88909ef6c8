// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/queues/queue_hints.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <optional>

#include "absl/synchronization/notification.h"
#include "daemon/worker/queues/queue.h"
#include "daemon/worker/worker_process.h"
#include "tests/loopback/harness.h"

namespace sluice::worker {
namespace {

constexpr QueueHints kLow = {QueueLevel::kLow, QueueLevel::kLow};
constexpr QueueHints kMedium = {};

int OwnNice() { return getpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid))); }

// Only a session whose queues are all low gives way, with all of its threads, and it comes back
// with the first other queue, and with the end of the last.
TEST(QueueHintsTest, OnlyLowSessionsGiveWay) {
  absl::Notification ask, answered, again, done;
  int other_low = 0;
  int other_back = 0;
  std::thread other([&] {
    ask.WaitForNotification();
    other_low = OwnNice();
    answered.Notify();
    again.WaitForNotification();
    other_back = OwnNice();
    done.Notify();
  });
  const bool possible = SetProcessNice(0);
  SessionHints hints;
  hints.Add(kLow);
  const int low = possible ? 10 : 0;
  EXPECT_EQ(OwnNice(), low);
  ask.Notify();
  answered.WaitForNotification();
  EXPECT_EQ(other_low, low);
  hints.Add(kMedium);
  EXPECT_EQ(OwnNice(), 0);
  hints.Remove(kMedium);
  EXPECT_EQ(OwnNice(), low);
  hints.Remove(kLow);
  again.Notify();
  done.WaitForNotification();
  EXPECT_EQ(OwnNice(), 0);
  EXPECT_EQ(other_back, 0);
  other.join();
}

// Of the calling thread, from 0 to 1024; nothing where the kernel tells none.
std::optional<uint32_t> OwnUtilisation() {
  struct {  // sched_attr of linux/sched/types.h, which cannot stand beside the C library's headers.
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t deadline[3];
    uint32_t util_min, util_max;
  } attributes = {};
  static_assert(sizeof(attributes) == 56);
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0) != 0) return std::nullopt;
  return attributes.util_max;
}

// A session whose queues are all of low throttle asks the kernel for a quarter at most, whatever
// their priorities. It asks for all again with the first other queue, and with the end of the last.
TEST(QueueHintsTest, OnlyLowThrottleAsksForLittle) {
  if (!SetProcessUtilisation(1024) || !OwnUtilisation())
    GTEST_SKIP() << "the kernel has no utilisation clamps";
  constexpr QueueHints kLowThrottle = {QueueLevel::kHigh, QueueLevel::kLow};
  constexpr QueueHints kHighThrottle = {QueueLevel::kLow, QueueLevel::kHigh};
  SessionHints hints;
  hints.Add(kLowThrottle);
  EXPECT_EQ(OwnUtilisation(), 256u);
  hints.Add(kLowThrottle);
  hints.Add(kHighThrottle);
  EXPECT_EQ(OwnUtilisation(), 1024u);
  hints.Remove(kHighThrottle);
  EXPECT_EQ(OwnUtilisation(), 256u);
  hints.Remove(kLowThrottle);
  EXPECT_EQ(OwnUtilisation(), 256u);
  hints.Remove(kLowThrottle);
  EXPECT_EQ(OwnUtilisation(), 1024u);
}

class FlushOrderTest : public LoopbackTest {};

// Queues that were touched together are flushed from high priority to low, equals in their order.
TEST_F(FlushOrderTest, HighIsFlushedFirst) {
  const uint64_t context = MakeContext();
  std::vector<uint64_t> ids;
  for (const uint64_t priority : {CL_QUEUE_PRIORITY_LOW_KHR, CL_QUEUE_PRIORITY_MED_KHR,
                                  CL_QUEUE_PRIORITY_HIGH_KHR, CL_QUEUE_PRIORITY_MED_KHR}) {
    pb::Command command;
    pb::CreateCommandQueue& body = *command.mutable_create_command_queue();
    body.set_queue_id(client_->NewId());
    body.set_context_id(context);
    body.set_device_id(kGpu);
    body.add_properties(CL_QUEUE_PRIORITY_KHR);
    body.add_properties(priority);
    ASSERT_EQ(client_->Call(command).status(), CL_SUCCESS);
    ids.push_back(body.queue_id());
  }
  Session& session = client_->session();
  client_.reset();  // Ends the session's thread, whose work is done here.
  session.AttachThread();
  fake_->ClearCalls();
  std::vector<uint64_t> handles;
  for (const uint64_t id : ids) {
    QueueObject* const queue = session.objects().Peek<QueueObject>(id);
    session.Touch(queue);
    handles.push_back(reinterpret_cast<uint64_t>(queue->handle.get()));
  }
  session.FlushTouched();
  std::vector<uint64_t> flushed;
  for (const fake::RecordedCall& call : fake_->Calls("clFlush")) flushed.push_back(call.values[0]);
  EXPECT_EQ(flushed, (std::vector<uint64_t>{handles[2], handles[1], handles[3], handles[0]}));
}

}  // namespace
}  // namespace sluice::worker
