// SPDX-License-Identifier: Apache-2.0
#include "platform_win/broker/installation_lock.h"

#include <gtest/gtest.h>
#include <windows.h>

#include <optional>
#include <thread>
#include <utility>

#include "platform_win/wide_text.h"

namespace sluice::os {
namespace {

constexpr wchar_t kName[] = L"Global\\sluice-installation-lock-test";

// The status that another thread gets, which gives the lock back, or ends with it in `kept`.
absl::Status TakeElsewhere(
    DWORD patience_ms, std::optional<absl::StatusOr<broker::InstallationLock>>* kept = nullptr) {
  absl::Status status;
  std::thread([&] {
    absl::StatusOr<broker::InstallationLock> lock =
        broker::InstallationLock::Take(kName, patience_ms);
    status = lock.status();
    if (kept != nullptr) kept->emplace(std::move(lock));
  }).join();
  return status;
}

bool Names(const absl::Status& status) {
  return status.message().find(FromWide(kName)) != absl::string_view::npos;
}

// One has it, the next is told after a while what may have it, and has it once that one is gone.
TEST(InstallationLockTest, OneAtATime) {
  {
    const auto first = broker::InstallationLock::Take(kName, 0);
    ASSERT_TRUE(first.ok()) << first.status();
    const absl::Status second = TakeElsewhere(20);
    EXPECT_TRUE(absl::IsDeadlineExceeded(second)) << second;
    EXPECT_TRUE(Names(second)) << second;
  }
  const absl::Status third = TakeElsewhere(0);
  EXPECT_TRUE(third.ok()) << third;
  EXPECT_TRUE(TakeElsewhere(0).ok());
}

// A process that waits for one has it when that one goes.
TEST(InstallationLockTest, PassedOn) {
  std::optional<absl::StatusOr<broker::InstallationLock>> first(
      broker::InstallationLock::Take(kName, 0));
  ASSERT_TRUE(first->ok()) << first->status();
  absl::Status second;
  std::thread waits([&] { second = broker::InstallationLock::Take(kName, 60'000).status(); });
  first.reset();
  waits.join();
  EXPECT_TRUE(second.ok()) << second;
}

// One whose holder died is the next one's.
TEST(InstallationLockTest, HolderDies) {
  std::optional<absl::StatusOr<broker::InstallationLock>> dead;
  ASSERT_TRUE(TakeElsewhere(0, &dead).ok());
  const absl::Status next = TakeElsewhere(0);
  EXPECT_TRUE(next.ok()) << next;
}

// The name may be another program's, whatever kind of object it is: the refusal says which, and
// comes at once.
TEST(InstallationLockTest, NameOfAnotherProgram) {
  const OwnedHandle event(::CreateEventW(nullptr, TRUE, FALSE, kName));
  ASSERT_TRUE(event.valid());
  const absl::Status status = TakeElsewhere(INFINITE);
  EXPECT_TRUE(absl::IsAlreadyExists(status)) << status;
  EXPECT_TRUE(Names(status)) << status;
}

}  // namespace
}  // namespace sluice::os
