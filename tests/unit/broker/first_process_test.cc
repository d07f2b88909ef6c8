// SPDX-License-Identifier: Apache-2.0
//
// sluiced as the first process of a container: a PID namespace of its own, by unshare(1).
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>

#include "absl/strings/numbers.h"
#include "broker/event_loop.h"
#include "broker/os/local_socket.h"
#include "tests/unit/broker/broker_process.h"

namespace sluice::broker {
namespace {

std::string StatusLine(const std::string& pid, const std::string& key) {
  std::ifstream file("/proc/" + pid + "/status");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(key, 0) == 0) return line.substr(key.size());
  }
  return "";
}

// The process that has this number in a namespace below ours, as descendant of `top`; 0 if there is
// none.
pid_t FindInside(const std::string& number, pid_t top) {
  std::error_code ignored;
  const auto space = std::filesystem::read_symlink(
      "/proc/" + std::to_string(top) + "/ns/pid_for_children", ignored);
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    const std::string pid = entry.path().filename();
    std::istringstream numbers(StatusLine(pid, "NSpid:"));
    std::string outside, inside;
    if (!(numbers >> outside >> inside) || inside != number) continue;
    int found = 0;
    if (std::filesystem::read_symlink(entry.path() / "ns/pid", ignored) == space &&
        absl::SimpleAtoi(outside, &found)) {
      return found;
    }
  }
  return 0;
}

class FirstProcessTest : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root makes a PID namespace by itself";
    const auto listener = os::ListenLocal(socket_, 0600, 16);
    ASSERT_TRUE(listener.ok()) << listener.status();
    const os::UniqueFd output(::open(log_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    os::SpawnOptions options;
    options.path = "/usr/bin/unshare";
    // As a container's manager that has the socket: PID 1 is told that it is for it.
    options.arguments = {"--pid",
                         "--fork",
                         "--kill-child",
                         "/bin/sh",
                         "-c",
                         "LISTEN_PID=$$ LISTEN_FDS=1 exec \"$0\" \"$@\"",
                         SLUICE_TEST_SLUICED,
                         "--config",
                         "/dev/null",
                         "--worker-user",
                         "root",
                         "--socket",
                         socket_};
    options.environment = os::OwnEnvironment();  // With a sanitizer's options.
    options.descriptors = {{listener->get(), 3}};
    options.output = output.get();
    auto container = os::Spawn(options);
    ASSERT_TRUE(container.ok()) << container.status();
    container_ = *std::move(container);
    ASSERT_TRUE(client_.emplace(socket_).Greet(&welcome_)) << Log();
    first_ = FindInside("1", container_.pid());
    ASSERT_NE(first_, 0) << Log();
  }
  void TearDown() override {
    if (!container_.valid()) return;
    container_.KillGroup();
    container_.WaitAndReap(-1);
  }

  std::string Log() const {
    std::ifstream file(log_);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }
  bool WaitForLog(const std::string& text) const {
    const int64_t deadline_ms = MonotonicMs() + kTestTimeoutMs;
    while (Log().find(text) == std::string::npos) {
      if (MonotonicMs() > deadline_ms) return false;
    }
    return true;
  }

  TestDirectory directory_;
  const std::string socket_ = directory_.ClientSocket();
  const std::string log_ = directory_.path() + "/log";
  os::ChildProcess container_;
  pid_t first_ = 0;
  std::optional<TestClient> client_;
  wire::Welcome welcome_;
};

// A process that a worker left behind is nobody's zombie: it is gone, number and all.
TEST_F(FirstProcessTest, OrphansAreReaped) {
  wire::SessionOpened opened;
  os::UniqueFd channel = client_->Open(&opened);
  ASSERT_TRUE(channel.valid()) << opened.message;
  const std::string stray = AskWorker(channel.get(), "stray");
  const pid_t number = FindInside(stray, container_.pid());
  ASSERT_NE(number, 0) << stray;
  channel.reset();
  ASSERT_TRUE(WaitForLog("\"session ended\"")) << Log();
  const int64_t deadline_ms = MonotonicMs() + kTestTimeoutMs;
  while (::kill(number, 0) == 0 && MonotonicMs() < deadline_ms) {
  }
  EXPECT_EQ(StatusLine(std::to_string(number), "State:"), "");
}

// Signals to the first process are the daemon's, the socket that it was given is served, and its
// end has the daemon's code.
TEST_F(FirstProcessTest, IsTheDaemonToTheContainersManager) {
  EXPECT_TRUE(WaitForLog("ready socket=" + socket_)) << Log();
  ASSERT_EQ(::kill(first_, SIGHUP), 0);
  EXPECT_TRUE(WaitForLog("reloading the configuration")) << Log();
  ASSERT_EQ(::kill(first_, SIGTERM), 0);
  const auto status = container_.WaitAndReap(kTestTimeoutMs);
  ASSERT_TRUE(status.has_value()) << Log();
  EXPECT_EQ(status->code, 0) << Log();
  EXPECT_TRUE(std::filesystem::exists(socket_)) << "it is whose it was";
}

}  // namespace
}  // namespace sluice::broker
