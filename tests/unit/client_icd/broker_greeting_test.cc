// SPDX-License-Identifier: Apache-2.0
// Whoever serves a socket's name decides what the first words get for an answer: nothing that it
// does, or leaves out, holds a program's start longer than it was told. On both systems.
#include "client_icd/connect/broker_greeting.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "broker/base/peer_version.h"
#include "broker/os/this_process.h"

namespace sluice::client {
namespace {

class BrokerGreetingTest : public testing::Test {
 protected:
  BrokerGreetingTest() {
    // The process keeps what it is given.
    static char limit[] = "SLUICE_CONNECT_TIMEOUT_MS=200";
    ::putenv(limit);
    static int number = 0;
    const std::string name = absl::StrCat("sluice-greeting-", os::ProcessId(), "-", ++number);
    path_ = std::string(os::kLocalScheme) == "pipe:" ? R"(\\.\pipe\)" + name
                                                     : testing::TempDir() + name;
    listener_ = os::ListenLocal(path_, 0600, 4).value();
  }
  ~BrokerGreetingTest() override {
    static char none[] = "SLUICE_CONNECT_TIMEOUT_MS=";
    ::putenv(none);
    std::remove(path_.c_str());
  }

  absl::Status Greet() {
    wire::Welcome welcome;
    std::vector<os::UniqueFd> fds;
    return GreetBroker(path_, "", &welcome, &fds).status();
  }
  static bool IsLate(const absl::Status& status) {
    return absl::IsDeadlineExceeded(status) && absl::StrContains(status.message(), "within 200 ms");
  }

  std::string path_;
  os::UniqueFd listener_;
};

// A connection that is taken, and whose first word is never answered.
TEST_F(BrokerGreetingTest, Silence) {
  const absl::Status status = Greet();
  EXPECT_TRUE(IsLate(status)) << status;
}

// Messages that are no answer do not give more time, however many come.
TEST_F(BrokerGreetingTest, OtherMessagesWithoutEnd) {
  std::thread server([this] {
    absl::StatusOr<os::UniqueFd> accepted = absl::UnavailableError("nobody yet");
    while (absl::IsUnavailable(accepted.status()) && os::WaitReadable(listener_.get(), 60'000).ok())
      accepted = os::AcceptLocal(listener_.get());
    ASSERT_TRUE(accepted.ok()) << accepted.status();
    const wire::SessionOpened other = wire::MakeMessage<wire::SessionOpened>();
    absl::Status sent;
    while (sent.ok() || absl::IsUnavailable(sent)) {
      if (!os::WaitWritable(accepted->get(), 60'000).ok()) break;
      sent = os::SendMessage(accepted->get(), &other, sizeof(other));
    }
  });
  const absl::Status status = Greet();
  EXPECT_TRUE(IsLate(status)) << status;
  server.join();
}

// An answer that no version of this client understands names its own, and what to do.
TEST_F(BrokerGreetingTest, AnswerOfAnotherVersion) {
  std::thread server([this] {
    absl::StatusOr<os::UniqueFd> accepted = absl::UnavailableError("nobody yet");
    while (absl::IsUnavailable(accepted.status()) && os::WaitReadable(listener_.get(), 60'000).ok())
      accepted = os::AcceptLocal(listener_.get());
    ASSERT_TRUE(accepted.ok()) << accepted.status();
    const char answer[] = "a greeting of the year 2040";
    EXPECT_TRUE(os::SendMessage(accepted->get(), answer, sizeof(answer)).ok());
    char packet[wire::kMaxBrokerMessageBytes];
    absl::StatusOr<size_t> hello = absl::UnavailableError("nothing yet");
    while (absl::IsUnavailable(hello.status()) && os::WaitReadable(accepted->get(), 60'000).ok())
      hello = os::ReceiveMessage(accepted->get(), packet, sizeof(packet), nullptr, 0);
    wire::Hello greeting;
    ASSERT_TRUE(hello.ok() && wire::ParseMessage(packet, *hello, &greeting)) << hello.status();
    EXPECT_EQ(VersionIn(greeting.features), VersionIn(VersionFeature())) << greeting.features;
  });
  const absl::Status status = Greet();
  EXPECT_TRUE(absl::StrContains(status.message(), VersionAdvice("client", "daemon", ""))) << status;
  server.join();
}

}  // namespace
}  // namespace sluice::client
