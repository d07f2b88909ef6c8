// SPDX-License-Identifier: Apache-2.0
#include "client_icd/sharing/core/exit_gate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace sluice::client::sharing {
namespace {

// Closing waits for who is inside, and lets nobody in any more.
TEST(ExitGateTest, WaitsForThoseInside) {
  ExitGate gate;
  ASSERT_TRUE(gate.Enter());
  std::atomic<bool> left{false};
  std::thread inside([&] {
    while (!gate.closed()) std::this_thread::yield();
    left = true;
    gate.Leave();
  });
  EXPECT_TRUE(gate.Close(absl::Seconds(60)));
  EXPECT_TRUE(left);
  EXPECT_FALSE(gate.Enter());
  inside.join();
}

// One that does not leave holds nobody up for ever.
TEST(ExitGateTest, WaitsWithABound) {
  ExitGate gate;
  ASSERT_TRUE(gate.Enter());
  EXPECT_FALSE(gate.given_up());
  EXPECT_FALSE(gate.Close(absl::Milliseconds(1)));
  EXPECT_TRUE(gate.given_up());
  gate.Leave();
  EXPECT_TRUE(gate.Close(absl::ZeroDuration()));
}

// A last job may still enter, once; a job that has been taken back is not done.
TEST(ExitGateTest, DoesWhatIsLast) {
  ExitGate gate;
  int done = 0, gone = 0;
  gate.AddLast(&done, [&] {
    ASSERT_TRUE(gate.Enter());
    ++done;
    gate.Leave();
  });
  gate.AddLast(&gone, [&] { ++gone; });
  gate.RemoveLast(&gone);
  EXPECT_TRUE(gate.Close(absl::Seconds(60)));
  EXPECT_TRUE(gate.Close(absl::Seconds(60)));
  EXPECT_EQ(done, 1);
  EXPECT_EQ(gone, 0);
}

// A program may end by exit() while its own thread is inside.
TEST(ExitGateTest, ExitClosesTheProcesssGate) {
  EXPECT_EXIT(
      {
        ExitGate& gate = ExitGate::OfProcess();
        ExitGate::CloseAtExit();
        if (!gate.Enter()) std::_Exit(1);
        std::thread([&gate] {
          while (!gate.closed()) std::this_thread::yield();
          std::fputs("left", stderr);
          gate.Leave();
        }).detach();
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "left");
}

}  // namespace
}  // namespace sluice::client::sharing
