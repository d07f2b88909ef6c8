// SPDX-License-Identifier: Apache-2.0
#include "broker/instance.h"

#include <gtest/gtest.h>
#include <windows.h>

#include <string>

#include "platform_win/handles/handle_table.h"

namespace sluice::os {
namespace {

constexpr char kPipe[] = R"(\\.\pipe\sluice-instance-test)";

// One daemon has a pipe's name; the next is told so, and has it once that one has gone.
TEST(InstanceTest, OneDaemonForAPipe) {
  {
    const auto first = broker::InstanceLock::Take(kPipe);
    ASSERT_TRUE(first.ok()) << first.status();
    const absl::Status second = broker::InstanceLock::Take(kPipe).status();
    EXPECT_TRUE(absl::IsAlreadyExists(second)) << second;
    EXPECT_NE(second.message().find("stop it first"), absl::string_view::npos) << second;
  }
  EXPECT_TRUE(broker::InstanceLock::Take(kPipe).ok());
}

// The mutex of that name may be another program's, whatever kind of object it is: the refusal says
// which name that program has taken.
TEST(InstanceTest, NameOfAnotherProgram) {
  const wchar_t name[] = L"Global\\sluice-instance-test.lock";
  const auto refused = [] {
    const absl::Status status = broker::InstanceLock::Take(kPipe).status();
    EXPECT_TRUE(absl::IsAlreadyExists(status)) << status;
    EXPECT_NE(status.message().find("Global\\sluice-instance-test.lock"), absl::string_view::npos)
        << status;
    EXPECT_NE(status.message().find("another program"), absl::string_view::npos) << status;
  };
  {
    const OwnedHandle mutex(::CreateMutexW(nullptr, TRUE, name));
    ASSERT_TRUE(mutex.valid());
    refused();
  }
  const OwnedHandle event(::CreateEventW(nullptr, TRUE, FALSE, name));
  ASSERT_TRUE(event.valid());
  refused();
}

}  // namespace
}  // namespace sluice::os
