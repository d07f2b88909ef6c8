// SPDX-License-Identifier: Apache-2.0
// The gate of turns (daemon/worker/queues/turn_gate.h), with a page that the test writes as the
// broker would.
#include <climits>
#include <functional>

#include "broker/os/doorbell.h"
#include "proto/spin.h"
#include "tests/loopback/harness.h"

namespace sluice::worker {
namespace {

using wire::TurnOrder;
using Pays = TurnGate::Pays;

constexpr int64_t kHourNs = 3600LL * 1'000'000'000;
constexpr char kLaunch[] = "clEnqueueNDRangeKernel";

class TurnLoopbackTest : public LoopbackTest {
 protected:
  void Prepare(cl_uint gpu_vendor_id, Pays pays) {
    client_.reset();
    Start({}, gpu_vendor_id);
    Session& session = client_->session();
    session.TurnsForTesting().AttachForTesting(&orders_, &words_, pays);
    session.completions().set_running(session.TurnsForTesting().running());
    context_ = MakeContext();
    queue_ = MakeQueue(context_);
    kernel_ = MakeKernel(MakeProgram(context_));
    client_->Sync();
  }
  void SetUp() override { Prepare(0, Pays::kEverywhere); }
  void TearDown() override {
    Order(TurnOrder::kFree);
    client_.reset();
  }

  void Order(TurnOrder order, int64_t heartbeat_ns = wire::MonotonicNs() + kHourNs) {
    orders_.heartbeat_ns = heartbeat_ns;
    orders_.order = static_cast<uint32_t>(order);
    os::FutexWake(&orders_.order, INT_MAX, ~0U);
  }
  uint64_t Launch(uint64_t queue, const std::vector<uint64_t>& waits = {}) {
    pb::Command command;
    pb::EnqueueNdRangeKernel& body = *command.mutable_enqueue_nd_range_kernel();
    const uint64_t event = On(body.mutable_on(), queue, waits);
    body.set_kernel_id(kernel_);
    body.mutable_range()->add_global(1);
    client_->Send(command);
    return event;
  }
  // Nobody asks for its end.
  void LaunchUnasked() {
    pb::Command command;
    pb::EnqueueNdRangeKernel& body = *command.mutable_enqueue_nd_range_kernel();
    On(body.mutable_on(), queue_);
    body.mutable_on()->set_event_id(0);
    body.set_kernel_id(kernel_);
    body.mutable_range()->add_global(1);
    client_->Send(command);
  }
  void WaitUntilHeld() {
    client_->WaitUntil([] { return words_.waiting == 1; });
  }

  // A driver's callback may come after the test.
  static inline wire::TurnOrders orders_ = {};
  static inline wire::TurnWords words_ = {};
  uint64_t context_ = 0, queue_ = 0, kernel_ = 0;
};

TEST_F(TurnLoopbackTest, WithoutAnOrderNothingIsHeldBack) {
  const uint32_t before = words_.submitted;
  EXPECT_EQ(Completed(Launch(queue_)).status(), CL_COMPLETE);
  EXPECT_EQ(words_.submitted.load(), before + 1);
  EXPECT_NE(words_.device.load(), 0u);
}

TEST_F(TurnLoopbackTest, WaitsForItsTurn) {
  Order(TurnOrder::kWait);
  const uint64_t event = Launch(queue_);
  WaitUntilHeld();
  EXPECT_EQ(fake_->Count(kLaunch), 0u);
  Order(TurnOrder::kSoon);
  EXPECT_EQ(words_.waiting.load(), 1u);
  EXPECT_EQ(fake_->Count(kLaunch), 0u);
  Order(TurnOrder::kGo);
  EXPECT_EQ(Completed(event).status(), CL_COMPLETE);
  EXPECT_EQ(words_.waiting.load(), 0u);
}

// Commands given to the driver in the turn before go on and are told, in every way of looking.
TEST_F(TurnLoopbackTest, WhatIsUnderWayEndsWhileTheNextWaits) {
  for (const cl_uint vendor : {cl_uint{0}, kNvidia}) {
    Prepare(vendor, Pays::kEverywhere);
    fake_->HoldCommands();
    const uint64_t first = Launch(queue_);
    client_->WaitUntil([] { return words_.running == 1; });
    Order(TurnOrder::kWait);
    const uint64_t second = Launch(queue_);
    WaitUntilHeld();
    fake_->ReleaseCommands();
    EXPECT_EQ(Completed(first).status(), CL_COMPLETE);
    client_->WaitUntil([] { return words_.running == 0; });
    EXPECT_EQ(words_.waiting.load(), 1u);
    Order(TurnOrder::kGo);
    EXPECT_EQ(Completed(second).status(), CL_COMPLETE);
  }
}

// A turn's end waits for what nobody has asked an event of, too.
TEST_F(TurnLoopbackTest, WhatNobodyWaitsForIsCountedWhenTheTurnIsOver) {
  fake_->HoldCommands();
  LaunchUnasked();
  client_->Sync();
  EXPECT_EQ(words_.running.load(), 0u);
  Order(TurnOrder::kWait);
  const uint64_t next = Launch(queue_);
  WaitUntilHeld();
  client_->WaitUntil([] { return words_.running == 1; });
  fake_->ReleaseCommands();
  client_->WaitUntil([] { return words_.running == 0; });
  Order(TurnOrder::kGo);
  EXPECT_EQ(Completed(next).status(), CL_COMPLETE);
}

// Somebody else may have to do something first, and may want the device for it.
TEST_F(TurnLoopbackTest, WhatWaitsForSomebodyElseIsNoWorkAndNotHeldBack) {
  Order(TurnOrder::kWait);
  const uint64_t user = MakeUserEvent(context_);
  const uint32_t submitted = words_.submitted;
  const uint64_t first = Launch(queue_, {user});
  const uint64_t behind = Launch(queue_);
  const uint64_t elsewhere = Launch(MakeQueue(context_), {behind});
  client_->Sync();
  EXPECT_EQ(fake_->Count(kLaunch), 3u);
  EXPECT_EQ(words_.waiting.load(), 0u);
  EXPECT_EQ(words_.running.load(), 0u);
  EXPECT_EQ(words_.submitted.load(), submitted);
  SetUserEvent(user, CL_COMPLETE);
  for (const uint64_t event : {first, behind, elsewhere})
    EXPECT_EQ(Completed(event).status(), CL_COMPLETE);
}

// The rest of the session's own work counts, whichever queue it is in.
TEST_F(TurnLoopbackTest, WhatWaitsForTheSessionsOwnWorkIsWork) {
  fake_->HoldCommands();
  const uint64_t first = Launch(queue_);
  const uint64_t second = Launch(MakeQueue(context_), {first});
  client_->WaitUntil([] { return words_.running == 2; });
  fake_->ReleaseCommands();
  EXPECT_EQ(Completed(second).status(), CL_COMPLETE);
  client_->WaitUntil([] { return words_.running == 0; });
}

// The broker was killed, or stopped.
TEST_F(TurnLoopbackTest, WithoutASignOfLifeNobodyWaits) {
  Order(TurnOrder::kWait, wire::MonotonicNs());
  EXPECT_EQ(Completed(Launch(queue_)).status(), CL_COMPLETE);
  Order(TurnOrder::kWait, 0);
  EXPECT_EQ(Completed(Launch(queue_)).status(), CL_COMPLETE);
  EXPECT_EQ(words_.waiting.load(), 0u);
}

TEST_F(TurnLoopbackTest, OnlyWhereASwitchIsDear) {
  words_.device = 0;
  Prepare(0, Pays::kWhereDear);
  EXPECT_EQ(words_.device.load(), 0u);
  EXPECT_NE(words_.share_device.load(), 0u);
  Prepare(kNvidia, Pays::kWhereDear);
  EXPECT_NE(words_.device.load(), 0u);
  EXPECT_EQ(words_.share_device.load(), 0u);
  Prepare(kNvidia, Pays::kNowhere);
  EXPECT_EQ(words_.device.load(), 0u);
  EXPECT_NE(words_.share_device.load(), 0u);
}

TEST_F(TurnLoopbackTest, ADeviceOfTurnsGoesBeforeOneOfShares) {
  words_.device = 0;
  Prepare(kNvidia, Pays::kWhereDear);  // Its context is of the GPU.
  const uint64_t gpu = words_.device;
  client_.reset();
  words_.device = words_.share_device = 0;
  Start({}, kNvidia);
  client_->session().TurnsForTesting().AttachForTesting(&orders_, &words_, Pays::kWhereDear);
  MakeContext(kCpu);
  client_->Sync();
  EXPECT_NE(words_.share_device.load(), 0u);
  EXPECT_EQ(words_.is_cpu.load(), 1u);
  MakeContext(kGpu);
  client_->Sync();
  EXPECT_EQ(words_.device.load(), gpu);
  EXPECT_EQ(words_.share_device.load(), 0u);
  EXPECT_EQ(words_.is_cpu.load(), 0u);
  MakeContext(kCpu);
  client_->Sync();
  EXPECT_EQ(words_.device.load(), gpu);
}

class PacedLoopbackTest : public TurnLoopbackTest {
 protected:
  void SetUp() override {
    TurnLoopbackTest::SetUp();
    orders_.credit_ns = 1'000'000;
    Order(TurnOrder::kPaced);
  }
  // A command is held back by its own work: it waits for its turn before, and again after. It would
  // not, had it gone meanwhile.
  void ExpectHeld() {
    Order(TurnOrder::kWait);
    WaitUntilHeld();
    Order(TurnOrder::kPaced);
    client_->WaitUntil([] { return words_.waiting == 0; });
    Order(TurnOrder::kWait);
    WaitUntilHeld();
    Order(TurnOrder::kPaced);
  }
};

TEST_F(PacedLoopbackTest, WhatIsNotKnownToBeShortIsWaitedFor) {
  for (const cl_uint vendor : {cl_uint{0}, kNvidia}) {
    Order(TurnOrder::kFree);
    Prepare(vendor, Pays::kEverywhere);
    Order(TurnOrder::kPaced);
    fake_->HoldCommands();
    const uint64_t first = Launch(queue_);
    client_->WaitUntil([] { return words_.running == 1; });
    const uint64_t second = Launch(queue_);
    ExpectHeld();
    EXPECT_EQ(fake_->Count(kLaunch), 1u);
    fake_->ReleaseCommands();
    EXPECT_EQ(Completed(first).status(), CL_COMPLETE);
    EXPECT_EQ(Completed(second).status(), CL_COMPLETE);
    client_->WaitUntil([] { return words_.running == 0; });
  }
}

TEST_F(PacedLoopbackTest, ManyShortOnesGoAhead) {
  orders_.credit_ns = kHourNs;
  EXPECT_EQ(Completed(Launch(queue_)).status(), CL_COMPLETE);
  client_->WaitUntil([] { return words_.running == 0; });
  fake_->HoldCommands();
  for (int i = 0; i < 10; ++i) Launch(queue_);
  client_->WaitUntil([] { return words_.running == 10; });
  fake_->ReleaseCommands();
  client_->WaitUntil([] { return words_.running == 0; });
}

// The window's end waits for it, and its account pays.
TEST_F(PacedLoopbackTest, WhatNobodyAsksAboutIsCounted) {
  fake_->HoldCommands();
  LaunchUnasked();
  client_->WaitUntil([] { return words_.running == 1; });
  LaunchUnasked();
  ExpectHeld();
  fake_->ReleaseCommands();
  client_->Sync();
  client_->WaitUntil([this] { return fake_->Count(kLaunch) == 2 && words_.running == 0; });
}

// Work under way may wait for what is held back, as a kernel that looks at shared memory does.
TEST_F(PacedLoopbackTest, WithoutAnyProgressTheNextGoesAllTheSame) {
  fake_->HoldCommands();
  Launch(queue_);
  const int64_t began = wire::MonotonicNs();
  Launch(queue_);
  client_->WaitUntil([this] { return fake_->Count(kLaunch) == 2; });
  EXPECT_GT(wire::MonotonicNs() - began, 900'000'000);
  fake_->ReleaseCommands();
  client_->WaitUntil([] { return words_.running == 0; });
}

TEST_F(PacedLoopbackTest, WithoutASignOfLifeNobodyIsPaced) {
  Order(TurnOrder::kPaced, 0);
  fake_->HoldCommands();
  Launch(queue_);
  Launch(queue_);
  client_->WaitUntil([] { return words_.running == 2; });
  fake_->ReleaseCommands();
  client_->WaitUntil([] { return words_.running == 0; });
}

TEST_F(PacedLoopbackTest, WhatWaitsForSomebodyElseIsNotHeldBack) {
  fake_->HoldCommands();
  Launch(queue_);
  client_->WaitUntil([] { return words_.running == 1; });
  const uint64_t user = MakeUserEvent(context_);
  const uint64_t waits = Launch(MakeQueue(context_), {user});
  client_->Sync();
  EXPECT_EQ(fake_->Count(kLaunch), 2u);
  EXPECT_EQ(words_.running.load(), 1u);
  SetUserEvent(user, CL_COMPLETE);
  fake_->ReleaseCommands();
  EXPECT_EQ(Completed(waits).status(), CL_COMPLETE);
}

}  // namespace
}  // namespace sluice::worker
