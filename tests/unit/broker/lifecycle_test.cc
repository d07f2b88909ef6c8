// SPDX-License-Identifier: Apache-2.0
//
// How sluiced starts and stops, with real processes.
#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "broker/os/local_socket.h"
#include "broker/os/shared_memory.h"
#include "tests/unit/broker/broker_process.h"

namespace sluice::broker {
namespace {

mode_t ModeOf(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 ? info.st_mode & 07777 : 0;
}

bool Exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

struct ShortRun {
  os::ExitStatus status;
  std::string output;
};

// Runs sluiced to its end and returns what it printed.
ShortRun RunToEnd(const std::vector<std::string>& arguments) {
  int ends[2];
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const os::UniqueFd read_end(ends[0]);
  os::UniqueFd write_end(ends[1]);
  os::SpawnOptions options;
  options.path = SLUICE_TEST_SLUICED;
  options.arguments = arguments;
  options.output = write_end.get();
  auto child = os::Spawn(options);
  EXPECT_TRUE(child.ok()) << child.status();
  write_end.reset();
  ShortRun run;
  run.output = ReadUntil(read_end.get(), "\x01 nothing prints this");  // To the end of the pipe.
  run.status = child->WaitAndReap(kTestTimeoutMs).value_or(os::ExitStatus{-1, 0});
  return run;
}

class LifecycleTest : public testing::Test {
 protected:
  TestDirectory directory_;
};

// Told to stop with no session, it ends with 0 and leaves no socket and no lock.
TEST_F(LifecycleTest, StartsAndStopsCleanly) {
  BrokerProcess broker(directory_, {});
  ASSERT_TRUE(broker.ok());
  EXPECT_EQ(ModeOf(broker.socket()), ::geteuid() == 0 ? 0666u : 0600u);
  EXPECT_EQ(ModeOf(broker.admin_socket()), 0600u);
  broker.Signal(SIGTERM);
  EXPECT_EQ(broker.WaitForExit().code, 0);
  EXPECT_FALSE(Exists(broker.socket()));
  EXPECT_FALSE(Exists(broker.admin_socket()));
  EXPECT_FALSE(Exists(directory_.path() + "/sluice/broker.sock.lock"));
}

// The socket's mode is the configuration's.
TEST_F(LifecycleTest, SocketModeIsConfigured) {
  BrokerProcess broker(directory_,
                       {.arguments = {}, .config = "[broker]\nsocket_mode = \"0640\"\n"});
  EXPECT_EQ(ModeOf(broker.socket()), 0640u);
}

// A second daemon on the same socket ends with 3, names the first, and does not disturb it.
TEST_F(LifecycleTest, SecondInstanceIsRefused) {
  BrokerProcess first(directory_, {});
  const ShortRun second = RunToEnd({"--config", "/dev/null", "--socket", first.socket()});
  EXPECT_EQ(second.status.code, 3);
  EXPECT_NE(second.output.find("pid " + std::to_string(first.process().pid())), std::string::npos)
      << second.output;
  TestClient client(first.socket());
  wire::Welcome welcome;
  EXPECT_TRUE(client.Greet(&welcome));
}

// The socket that a killed daemon left behind does not stop the next one.
TEST_F(LifecycleTest, StaleSocketIsReplaced) {
  {
    BrokerProcess killed(directory_, {});
    killed.Signal(SIGKILL);
    EXPECT_EQ(killed.WaitForExit().signal, SIGKILL);
    ASSERT_TRUE(Exists(killed.socket()));
    ASSERT_TRUE(Exists(killed.admin_socket()));
  }
  BrokerProcess next(directory_, {});
  TestClient client(next.socket());
  wire::Welcome welcome;
  EXPECT_TRUE(client.Greet(&welcome));
}

// A socket that somebody else serves, and a file that is no socket, are left alone: exit code 3.
TEST_F(LifecycleTest, ForeignFilesAreNotRemoved) {
  const std::string path = directory_.ClientSocket();
  {
    const auto listener = os::ListenLocal(path, 0600, 4);
    ASSERT_TRUE(listener.ok());
    EXPECT_EQ(RunToEnd({"--config", "/dev/null", "--socket", path}).status.code, 3);
    EXPECT_TRUE(os::ConnectLocal(path, kTestTimeoutMs).ok());
  }
  ::unlink(path.c_str());
  std::ofstream(path) << "precious";
  const ShortRun run = RunToEnd({"--config", "/dev/null", "--socket", path});
  EXPECT_EQ(run.status.code, 1);  // 3 is for another daemon alone.
  EXPECT_NE(run.output.find("is no socket"), std::string::npos) << run.output;
  EXPECT_EQ(std::filesystem::file_size(path), 8u);
}

// SIGTERM refuses new sessions, lets running ones go on, and ends the daemon after the last.
TEST_F(LifecycleTest, SigtermDrains) {
  BrokerProcess broker(directory_, {});
  TestClient client(broker.socket());
  wire::Welcome welcome;
  ASSERT_TRUE(client.Greet(&welcome));
  wire::SessionOpened opened;
  os::UniqueFd channel = client.Open(&opened);
  ASSERT_TRUE(channel.valid());
  broker.Signal(SIGTERM);
  // By default 30 s, and what ends the sessions that are left then.
  const std::string extended = broker.WaitUntilItTells("EXTEND_TIMEOUT_USEC=");
  EXPECT_GT(std::atoll(extended.c_str() + extended.find('=') + 1), 30'000'000) << extended;
  // Either the signal or this request may be handled first: ask until the answer changes.
  wire::SessionOpened refused;
  os::UniqueFd more;
  do {
    more = client.Open(&refused);
  } while (more.valid());
  EXPECT_EQ(refused.status, ESHUTDOWN);
  EXPECT_STRNE(refused.message, "");
  EXPECT_NE(DescribeWorker(channel.get()), "");
  EXPECT_TRUE(broker.process().valid());
  channel.reset();
  EXPECT_EQ(broker.WaitForExit().code, 0);
}

// Sessions that outlast the drain timeout are ended, also if their worker ignores being asked.
TEST_F(LifecycleTest, DrainTimeoutEndsWorkers) {
  for (const char* mode : {"", "ignore"}) {
    BrokerProcess broker(directory_, {.arguments = {"--drain-timeout-ms", "50"},
                                      .config = "[broker]\nkill_grace_ms = 50\n",
                                      .worker_mode = mode});
    TestClient client(broker.socket());
    wire::Welcome welcome;
    ASSERT_TRUE(client.Greet(&welcome));
    wire::SessionOpened opened;
    const os::UniqueFd channel = client.Open(&opened);
    ASSERT_TRUE(channel.valid());
    broker.Signal(SIGTERM);
    EXPECT_EQ(broker.WaitForExit().code, 0);
    EXPECT_TRUE(WaitForEndOfFile(channel.get())) << "the worker lives on";
  }
}

// A second SIGTERM ends everything at once, however long the first would have waited.
TEST_F(LifecycleTest, SecondSigtermStopsAtOnce) {
  BrokerProcess broker(directory_, {.arguments = {"--drain-timeout-ms", "3600000"},
                                    .config = "[broker]\nkill_grace_ms = 60000\n",
                                    .worker_mode = "ignore"});
  TestClient client(broker.socket());
  wire::Welcome welcome;
  ASSERT_TRUE(client.Greet(&welcome));
  wire::SessionOpened opened;
  const os::UniqueFd channel = client.Open(&opened);
  ASSERT_TRUE(channel.valid());
  broker.Signal(SIGTERM);
  // Until the first one is seen: signals of one number do not queue.
  wire::SessionOpened refused;
  while (client.Open(&refused).valid()) {
  }
  broker.Signal(SIGTERM);
  EXPECT_EQ(broker.WaitForExit().code, 0);
  EXPECT_TRUE(WaitForEndOfFile(channel.get()));
}

// A killed broker leaves its workers: the session goes on, and ends when its client ends it.
TEST_F(LifecycleTest, KilledBrokerLeavesSessionsRunning) {
  BrokerProcess broker(directory_, {});
  TestClient client(broker.socket());
  wire::Welcome welcome;
  ASSERT_TRUE(client.Greet(&welcome));
  wire::SessionOpened opened;
  os::UniqueFd channel = client.Open(&opened);
  ASSERT_TRUE(channel.valid());
  broker.Signal(SIGKILL);
  broker.WaitForExit();
  EXPECT_TRUE(client.IsClosedByPeer());
  EXPECT_NE(DescribeWorker(channel.get()), "");
  // Half closed, so that the worker's own end can be seen: it reads the end of file and leaves.
  ASSERT_EQ(::shutdown(channel.get(), SHUT_WR), 0);
  EXPECT_TRUE(WaitForEndOfFile(channel.get()));
}

// Without devices it serves all the same, and tells every client why there are none.
TEST_F(LifecycleTest, ProbeFailureIsTold) {
  const struct {
    const char* mode;
    const char* reason;
    const char* timeout_ms;
  } cases[] = {{"probe-fail", "exit code 3: no driver?in /opt", "30000"},
               {"probe-empty", "no OpenCL platform", "30000"},
               {"probe-hang", "did not end in 200 ms", "200"}};
  for (const auto& one : cases) {
    BrokerProcess broker(
        directory_, {.arguments = {},
                     .config = absl::StrCat("[broker]\nprobe_timeout_ms = ", one.timeout_ms, "\n"),
                     .worker_mode = one.mode});
    TestClient client(broker.socket());
    wire::Welcome welcome;
    os::UniqueFd snapshot;
    ASSERT_TRUE(client.Greet(&welcome, &snapshot)) << one.mode;
    EXPECT_EQ(welcome.status, 0);
    EXPECT_EQ(welcome.snapshot_size, 0u);
    EXPECT_NE(std::string(welcome.message).find(one.reason), std::string::npos) << welcome.message;
    EXPECT_TRUE(snapshot.valid());
    broker.Signal(SIGTERM);
    EXPECT_EQ(broker.WaitForExit().code, 0);
  }
}

// SIGHUP takes new limits and keeps sessions; a wrong file changes nothing and is logged.
TEST_F(LifecycleTest, SighupReloads) {
  BrokerProcess broker(directory_, {});
  TestClient client(broker.socket());
  wire::Welcome welcome;
  ASSERT_TRUE(client.Greet(&welcome));
  wire::SessionOpened opened;
  const os::UniqueFd first = client.Open(&opened);
  ASSERT_TRUE(first.valid());

  broker.WriteConfig("[limits]\nmax_sessions_per_user = 1\nobjects_per_session = 77\n");
  broker.Signal(SIGHUP);
  ASSERT_NE(broker.WaitUntilReady(), "");
  EXPECT_FALSE(client.Open(&opened).valid());
  EXPECT_EQ(opened.status, EMFILE);
  EXPECT_NE(DescribeWorker(first.get()), "");

  broker.WriteConfig("[limits]\nmax_sessions_per_user = 2\nobjects_per_session = 78\n");
  broker.Signal(SIGHUP);
  ASSERT_NE(broker.WaitUntilReady(), "");
  const os::UniqueFd second = client.Open(&opened);
  ASSERT_TRUE(second.valid());
  EXPECT_EQ(opened.max_objects, 78u);
  EXPECT_NE(DescribeWorker(second.get()).find("arg --limit-objects=78\n"), std::string::npos);

  broker.WriteConfig("[limits]\nnonsense = 1\n");
  broker.Signal(SIGHUP);
  wire::SessionOpened refused;
  EXPECT_FALSE(client.Open(&refused).valid());
  EXPECT_EQ(refused.status, EMFILE);  // Still 2.
}

// --check-config says ok with 0, or what is wrong and where with 2; so does a wrong flag.
TEST_F(LifecycleTest, CheckConfigExitCodes) {
  const std::string file = directory_.path() + "/c.toml";
  std::ofstream(file) << "[limits]\nmax_sessions = 5\n";
  const ShortRun good = RunToEnd({"--check-config", file});
  EXPECT_EQ(good.status.code, 0);
  EXPECT_NE(good.output.find(": ok"), std::string::npos);
  std::ofstream(file) << "[limits]\nmax_sessions = \"five\"\n";
  const ShortRun bad = RunToEnd({"--check-config", file});
  EXPECT_EQ(bad.status.code, 2);
  EXPECT_NE(bad.output.find(file + ":2:"), std::string::npos) << bad.output;
  EXPECT_EQ(RunToEnd({"--config", file}).status.code, 2);
  EXPECT_EQ(RunToEnd({"--no-such-flag"}).status.code, 2);
  const ShortRun plain = RunToEnd(
      {"--config", "/dev/null", "--socket", directory_.path() + "/s", "--listen", "0.0.0.0:7466"});
  EXPECT_EQ(plain.status.code, 2);
  EXPECT_NE(plain.output.find("allow_plaintext"), std::string::npos) << plain.output;
}

// A daemon whose configuration names `socket`, and whom a service manager gives `listener`. Its
// output comes to `log`.
os::ChildProcess StartActivated(const os::UniqueFd& listener, const std::string& socket,
                                const std::string& log) {
  const os::UniqueFd output(::open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  os::SpawnOptions options;
  options.path = "/bin/sh";
  options.arguments = {"-c",
                       "LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=sluice exec \"$0\" \"$@\"",
                       SLUICE_TEST_SLUICED,
                       "--config",
                       "/dev/null",
                       "--socket",
                       socket};
  // As BrokerProcess has it.
  if (::geteuid() == 0)
    options.arguments.insert(options.arguments.end(), {"--worker-user", "root"});
  options.environment = os::OwnEnvironment();  // With a sanitizer's options.
  options.descriptors = {{listener.get(), 3}};
  options.output = output.get();
  auto daemon = os::Spawn(options);
  EXPECT_TRUE(daemon.ok()) << daemon.status();
  return daemon.ok() ? *std::move(daemon) : os::ChildProcess();
}

// A listening socket from the service manager is served, and stays the service manager's at the
// end.
TEST_F(LifecycleTest, SocketActivation) {
  const std::string path = directory_.ClientSocket();
  const auto listener = os::ListenLocal(path, 0600, 16);
  ASSERT_TRUE(listener.ok());
  os::ChildProcess daemon = StartActivated(*listener, path, directory_.path() + "/log");
  TestClient client(path);
  wire::Welcome welcome;
  EXPECT_TRUE(client.Greet(&welcome));
  wire::SessionOpened opened;
  const os::UniqueFd channel = client.Open(&opened);
  ASSERT_TRUE(channel.valid());
  EXPECT_EQ(DescribeWorker(channel.get()).find("LISTEN_"), std::string::npos);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(daemon.Signal(SIGINT).ok());
  // One or two were seen; in either case the session's end lets it stop.
  ::shutdown(channel.get(), SHUT_RDWR);
  const auto status = daemon.WaitAndReap(kTestTimeoutMs);
  ASSERT_TRUE(status.has_value());
  EXPECT_EQ(status->code, 0);
  EXPECT_TRUE(Exists(path));
}

// A configured socket that is not the service manager's is told once, with both and what to change;
// the same one by another way is not.
TEST_F(LifecycleTest, TellsOfAnotherSocketThanTheServiceManagers) {
  const std::string given = directory_.ClientSocket();
  const std::string folder = std::filesystem::path(given).parent_path();
  ASSERT_TRUE(std::filesystem::create_directory(directory_.path() + "/alias"));
  const std::string alias = directory_.path() + "/alias/clients";
  std::filesystem::create_directory_symlink(folder, alias);
  for (const std::string& configured : {folder + "/other.sock", given, alias + "/broker.sock"}) {
    const auto listener = os::ListenLocal(given, 0600, 16);
    ASSERT_TRUE(listener.ok());
    const std::string log_file = directory_.path() + "/log";
    os::ChildProcess daemon = StartActivated(*listener, configured, log_file);
    TestClient client(given);
    wire::Welcome welcome;
    EXPECT_TRUE(client.Greet(&welcome));
    ASSERT_TRUE(daemon.Signal(SIGTERM).ok());
    ASSERT_TRUE(daemon.WaitAndReap(kTestTimeoutMs).has_value());
    std::ifstream file(log_file);
    const std::string log(std::istreambuf_iterator<char>(file), {});
    const bool differs = configured == folder + "/other.sock";
    EXPECT_EQ(log.find("service manager's socket") != std::string::npos, differs) << log;
    EXPECT_EQ(log.find("in_use=" + given) != std::string::npos, differs) << log;
    EXPECT_EQ(log.find("configured=" + configured) != std::string::npos, differs) << log;
    EXPECT_EQ(log.find("ListenSequentialPacket=") != std::string::npos, differs) << log;
    // Where it can be reached, not where it was to be.
    EXPECT_NE(log.find("ready socket=" + given), std::string::npos) << log;
    std::filesystem::remove(given);
  }
}

}  // namespace
}  // namespace sluice::broker
