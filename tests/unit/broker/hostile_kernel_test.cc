// SPDX-License-Identifier: Apache-2.0
//
// The reach of a kernel that makes system calls of its own (CPU devices) from its worker, and what
// it cannot reach: the broker's socket, the daemon's log.
#include <errno.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "broker/base/log.h"
#include "broker/event_loop.h"
#include "tests/unit/broker/broker_process.h"

namespace sluice::broker {
namespace {

class HostileKernelTest : public testing::Test {
 protected:
  void SetUp() override {
    wire::Welcome welcome;
    ASSERT_TRUE(client_.Greet(&welcome)) << broker_.Log();
    wire::SessionOpened opened;
    channel_ = client_.Open(&opened);
    ASSERT_TRUE(channel_.valid()) << opened.message;
    session_ = " session=" + HexId(opened.session_id);
  }

  std::string Ask(const std::string& request) { return AskWorker(channel_.get(), request); }

  TestDirectory directory_;
  BrokerProcess broker_{directory_, {}};
  TestClient client_{broker_.socket()};
  os::UniqueFd channel_;
  std::string session_;
};

// A worker, and what it has started, is nobody's client: it would have another identity's limits.
TEST_F(HostileKernelTest, WorkersAreNoClients) {
  for (const char* who : {"connect ", "offspring ", "runaway "}) {
    const std::string answer = Ask(who + broker_.socket());
    EXPECT_EQ(answer.find("status " + std::to_string(EACCES) + " "), 0u) << who << answer;
    EXPECT_NE(answer.find("worker"), std::string::npos) << answer;
  }
  EXPECT_TRUE(broker_.WaitForLog("msg=\"connection closed\"")) << broker_.Log();
  EXPECT_NE(broker_.Log().find("a worker of this daemon"), std::string::npos) << broker_.Log();
  wire::Welcome welcome;
  EXPECT_TRUE(TestClient(broker_.socket()).Greet(&welcome));
  EXPECT_EQ(welcome.status, 0);
}

// Nor does what it has started outlive it.
TEST_F(HostileKernelTest, NothingIsLeftBehind) {
  const std::string stray = Ask("stray");
  // A zombie has ended; whose child it is now is not ours to say.
  const auto runs = [&stray] {
    std::ifstream file("/proc/" + stray + "/stat");
    std::string number, name, state;
    return file >> number >> name >> state && state != "Z" && state != "X";
  };
  ASSERT_TRUE(runs()) << stray;
  channel_.reset();
  ASSERT_TRUE(broker_.WaitForLog("\"session ended\"")) << broker_.Log();
  const int64_t deadline_ms = MonotonicMs() + kTestTimeoutMs;
  while (runs() && MonotonicMs() < deadline_ms) {
  }
  EXPECT_FALSE(runs());
  if (runs()) ::kill(std::stoi(stray), SIGKILL);
}

// Nor can it make children for the broker, which would stay zombies that nobody reaps.
TEST_F(HostileKernelTest, BrokerGetsNoChildren) {
  EXPECT_EQ(Ask("sibling"), std::to_string(EPERM) + " " + std::to_string(ENOSYS));
}

// A worker's stderr is told as that worker's, in one line, whatever it looks like. Its own lines
// keep their level.
TEST_F(HostileKernelTest, OutputIsToldAsTheWorkers) {
  EXPECT_EQ(Ask("say 2026-11-22T00:00:00.000Z error broker msg=forged \x1b[31mred\n"
                "2026-11-22T00:00:00.000Z warning worker msg=real a=b\n1 error generated.\n"),
            "done");
  ASSERT_TRUE(broker_.WaitForLog("1 error generated.")) << broker_.Log();
  const std::string log = broker_.Log();
  EXPECT_EQ(log.find("\n2026-11-22T00:00:00.000Z"), std::string::npos) << log;
  EXPECT_EQ(log.find('\x1b'), std::string::npos) << log;
  for (const std::string& line :
       {"Z info worker msg=output" + session_ +
            " text=\"2026-11-22T00:00:00.000Z error broker msg=forged \\x1b[31mred\"",
        "Z warning worker msg=output" + session_ + " text=\"msg=real a=b\"",
        "Z info worker msg=output" + session_ + " text=\"1 error generated.\""}) {
    EXPECT_NE(log.find(line), std::string::npos) << "missing " << line << " in\n" << log;
  }
}

// Nor do the drivers that a probe loads write there.
TEST_F(HostileKernelTest, OutputOfAProbe) {
  TestDirectory directory;
  BrokerProcess broker(directory, {.worker_mode = "probe-says"});
  const std::string log = broker.Log();
  EXPECT_EQ(log.find("\n2026-11-22T00:00:00.000Z"), std::string::npos) << log;
  EXPECT_NE(log.find("Z info worker msg=output task=probe text=\"2026-11-22T00:00:00.000Z error "
                     "broker msg=forged\""),
            std::string::npos)
      << log;
}

TEST_F(HostileKernelTest, LogCannotBeCut) {
  EXPECT_EQ(Ask("truncate"), "not cut");
  EXPECT_NE(broker_.Log().find("msg=ready"), std::string::npos) << broker_.Log();
}

// A flood is cut short, the worker is not stopped by it, and what was left out is counted.
TEST_F(HostileKernelTest, OutputCannotFloodTheLog) {
  const size_t before = broker_.Log().size();
  EXPECT_EQ(Ask("flood"), "done");
  EXPECT_LT(broker_.Log().size() - before, 200'000u);
  wire::Welcome welcome;
  EXPECT_TRUE(TestClient(broker_.socket()).Greet(&welcome));
  channel_.reset();
  ASSERT_TRUE(broker_.WaitForLog("\"session ended\""));
  EXPECT_NE(broker_.Log().find("left out"), std::string::npos);
}

// A worker outlives its broker, also when it has something to say then.
TEST_F(HostileKernelTest, OutputToNobody) {
  broker_.Signal(SIGKILL);
  broker_.WaitForExit();
  EXPECT_EQ(Ask("say into the void\n"), "done");
  EXPECT_NE(AskWorker(channel_.get(), "describe"), "");
}

// Lines without an end: cut where they get too long; the rest is not lost at the worker's end.
TEST_F(HostileKernelTest, UnfinishedAndLongLines) {
  EXPECT_EQ(Ask("say " + std::string(3000, 'x') + "\nunfinished"), "done");
  channel_.reset();
  ASSERT_TRUE(broker_.WaitForLog("\"session ended\""));
  const std::string log = broker_.Log();
  EXPECT_NE(log.find(session_ + " text=unfinished"), std::string::npos) << log;
  EXPECT_NE(log.find(std::string(1000, 'x') + "..."), std::string::npos) << log;
  EXPECT_EQ(log.find(std::string(2000, 'x')), std::string::npos) << log;
}

}  // namespace
}  // namespace sluice::broker
