// SPDX-License-Identifier: Apache-2.0
#include "daemon/queue_hints.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "absl/synchronization/notification.h"
#include "broker/os/worker_process.h"
#include "tests/loopback/harness.h"

namespace sluice {
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
}  // namespace sluice
