// SPDX-License-Identifier: Apache-2.0
#include "client_icd/sharing/core/native_wait.h"

#include <gtest/gtest.h>

namespace sluice::client::sharing {
namespace {

// Work is waited for as long as it is pending, and asked about no more once it is done.
TEST(NativeWaitTest, WaitsUntilDone) {
  int asked = 0;
  const auto ask = [&asked] {
    return ++asked < 5 ? NativeProgress::kPending : NativeProgress::kDone;
  };
  EXPECT_EQ(WaitForNative(ask, absl::InfiniteFuture()), CL_SUCCESS);
  EXPECT_EQ(asked, 5);
}

// Work that never ends is an error at the deadline, not before it and never success.
TEST(NativeWaitTest, LateIsAnError) {
  const absl::Time deadline = absl::Now() + absl::Milliseconds(20);
  int asked = 0;
  const auto ask = [&asked] {
    ++asked;
    return NativeProgress::kPending;
  };
  EXPECT_EQ(WaitForNative(ask, deadline), CL_OUT_OF_RESOURCES);
  EXPECT_GE(absl::Now(), deadline);
  EXPECT_GT(asked, 1);
}

// Finished work counts as done, also after the deadline; work that failed is not waited for.
TEST(NativeWaitTest, AsksBeforeItGivesUp) {
  EXPECT_EQ(WaitForNative([] { return NativeProgress::kDone; }, absl::InfinitePast()), CL_SUCCESS);
  int asked = 0;
  const auto fail = [&asked] {
    ++asked;
    return NativeProgress::kFailed;
  };
  EXPECT_EQ(WaitForNative(fail, absl::InfiniteFuture()), CL_OUT_OF_RESOURCES);
  EXPECT_EQ(asked, 1);
}

}  // namespace
}  // namespace sluice::client::sharing
