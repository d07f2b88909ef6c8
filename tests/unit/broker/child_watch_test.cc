// SPDX-License-Identifier: Apache-2.0
#include "broker/children/child_watch.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>

#include "broker/os/local_socket.h"

namespace sluice::broker {
namespace {

class ChildWatchTest : public testing::Test {
 protected:
  void SetUp() override {
    auto loop = EventLoop::Create();
    ASSERT_TRUE(loop.ok()) << loop.status();
    loop_ = *std::move(loop);
    os::SpawnOptions options;
    options.path = "/bin/sleep";
    options.arguments = {"1000"};
    auto child = os::Spawn(options);
    ASSERT_TRUE(child.ok()) << child.status();
    child_ = *std::move(child);
  }

  void TearDown() override {
    child_.KillGroup();
    child_.WaitAndReap(-1);
  }

  std::unique_ptr<EventLoop> loop_;
  os::ChildProcess child_;
};

// The end of a child is told once, with how it ended, and it is reaped by then.
TEST_F(ChildWatchTest, TellsTheEndOnce) {
  int calls = 0;
  ChildWatch watch(loop_.get());
  watch.Start(&child_, [&](const os::ExitStatus& status) {
    ++calls;
    EXPECT_EQ(status.signal, SIGTERM);
    EXPECT_FALSE(child_.valid());
    loop_->AddTimer(20, [&] { loop_->Quit(); });
  });
  ASSERT_TRUE(child_.Signal(SIGTERM).ok());
  loop_->Run();
  EXPECT_EQ(calls, 1);
}

// After Stop nothing is told.
TEST_F(ChildWatchTest, StopStops) {
  ChildWatch watch(loop_.get());
  watch.Start(&child_, [&](const os::ExitStatus&) { FAIL() << "told after Stop"; });
  ASSERT_TRUE(child_.Signal(SIGTERM).ok());
  watch.Stop();
  loop_->AddTimer(20, [&] { loop_->Quit(); });
  loop_->Run();
}

// Traces a process until it is told to let go.
class Tracer {
 public:
  explicit Tracer(pid_t traced) {
    auto pair = os::CreateSocketPair();
    if (!pair.ok()) return;
    pid_ = ::fork();
    if (pid_ == 0) {
      pair->first.reset();
      const bool attached = ::ptrace(PTRACE_SEIZE, traced, nullptr, nullptr) == 0;
      const char answer = attached ? 'y' : 'n';
      char byte;
      [[maybe_unused]] const absl::Status sent = os::SendMessage(pair->second.get(), &answer, 1);
      [[maybe_unused]] const auto end =
          os::ReceiveMessage(pair->second.get(), &byte, 1, nullptr, 0);
      ::_exit(0);
    }
    socket_ = std::move(pair->first);
    pair->second.reset();
    char answer = 0;
    traces_ = os::ReceiveMessage(socket_.get(), &answer, 1, nullptr, 0).ok() && answer == 'y';
  }
  ~Tracer() {
    LetGo();
    ::waitpid(pid_, nullptr, 0);
  }

  bool traces() const { return traces_; }
  void LetGo() { socket_.reset(); }

 private:
  pid_t pid_ = -1;
  os::UniqueFd socket_;
  bool traces_ = false;
};

constexpr char kNoTracing[] = "this system does not let a process trace its sibling";

// A child that died under a debugger is told when the debugger lets go; the loop turns meanwhile.
TEST_F(ChildWatchTest, TracedChildIsToldLater) {
  Tracer tracer(child_.pid());
  if (!tracer.traces()) GTEST_SKIP() << kNoTracing;
  bool released = false;
  bool told = false;
  ChildWatch watch(loop_.get());
  watch.Start(&child_, [&](const os::ExitStatus& status) {
    told = true;
    EXPECT_TRUE(released) << "reaped under its tracer: this test shows nothing";
    EXPECT_EQ(status.signal, SIGKILL);
    loop_->Quit();
  });
  ASSERT_TRUE(child_.Signal(SIGKILL).ok());
  loop_->AddTimer(200, [&] {
    released = true;
    tracer.LetGo();
  });
  loop_->Run();
  EXPECT_TRUE(told);
}

// Nobody waits for a killed child that the system does not give up: it is named in the log.
TEST_F(ChildWatchTest, KilledChildThatStaysIsLeft) {
  Tracer tracer(child_.pid());
  if (!tracer.traces()) GTEST_SKIP() << kNoTracing;
  const pid_t pid = child_.pid();
  testing::internal::CaptureStderr();
  KillAndReap(&child_, "test");
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(child_.valid()) << "reaped under its tracer: this test shows nothing";
  EXPECT_NE(log.find(std::to_string(pid)), log.npos) << log;
}

}  // namespace
}  // namespace sluice::broker
