// SPDX-License-Identifier: Apache-2.0
#include "broker/os/thread_checker.h"

#include <gtest/gtest.h>

#include <thread>

namespace sluice::broker {
namespace {

// The first thread that asserts is the one.
TEST(ThreadCheckerTest, AnotherThreadEndsTheProcess) {
  const os::ThreadChecker checker;
  checker.Assert();
  checker.Assert();
  EXPECT_DEATH(std::thread([&checker] { checker.Assert(); }).join(), "called on another");
}

// An object that was one thread's is given to another, whose it is from then on.
TEST(ThreadCheckerTest, AttachHandsOver) {
  const os::ThreadChecker checker;
  checker.Assert();
  std::thread([&checker] {
    checker.Attach();
    checker.Assert();
  }).join();
  EXPECT_DEATH(checker.Assert(), "called on another");
}

}  // namespace
}  // namespace sluice::broker
