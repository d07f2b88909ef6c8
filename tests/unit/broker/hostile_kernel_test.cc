// SPDX-License-Identifier: Apache-2.0
//
// What a kernel that makes system calls of its own (CPU devices) can reach from its worker, and
// what it cannot: the broker's socket, the daemon's log.
#include <errno.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "broker/base/log.h"
#include "broker/event_loop.h"
#include "tests/unit/broker/broker_process.h"

namespace sluice {
namespace {

class HostileKernelTest : public testing::Test {
 protected:
  void SetUp() override {
    Welcome welcome;
    ASSERT_TRUE(client_.Greet(&welcome)) << broker_.Log();
    SessionOpened opened;
    channel_ = client_.Open(&opened);
    ASSERT_TRUE(channel_.valid()) << opened.message;
    session_ = " session=" + HexId(opened.session_id);
  }

  std::string Ask(const std::string& request) { return AskWorker(channel_.get(), request); }

  bool WaitForLog(const std::string& text) {
    const int64_t deadline_ms = MonotonicMs() + kTestTimeoutMs;
    while (broker_.Log().find(text) == std::string::npos) {
      if (MonotonicMs() > deadline_ms) return false;
    }
    return true;
  }

  TestDirectory directory_;
  BrokerProcess broker_{directory_, {}};
  TestClient client_{broker_.socket()};
  UniqueFd channel_;
  std::string session_;
};

// A worker, and what it has started, is nobody's client: it would have another identity's limits.
TEST_F(HostileKernelTest, WorkersAreNoClients) {
  for (const char* who : {"connect ", "offspring "}) {
    const std::string answer = Ask(who + broker_.socket());
    EXPECT_EQ(answer.find("status " + std::to_string(EACCES) + " "), 0u) << who << answer;
    EXPECT_NE(answer.find("worker"), std::string::npos) << answer;
  }
  EXPECT_TRUE(WaitForLog("msg=\"connection closed\"")) << broker_.Log();
  EXPECT_NE(broker_.Log().find("a worker of this daemon"), std::string::npos) << broker_.Log();
  Welcome welcome;
  EXPECT_TRUE(TestClient(broker_.socket()).Greet(&welcome));
  EXPECT_EQ(welcome.status, 0);
}

}  // namespace
}  // namespace sluice
