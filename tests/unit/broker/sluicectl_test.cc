// SPDX-License-Identifier: Apache-2.0
//
// The command-line tool, as a person or a script meets it: output, exit codes, and what it leaves
// behind.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "broker/os/local_socket.h"
#include "tests/unit/broker/broker_process.h"

extern char** environ;

namespace sluice::broker {
namespace {

using Json = nlohmann::json;

// Of doctor's report.
Json Step(const Json& report, const std::string& name) {
  for (const Json& one : report.value("steps", Json::array())) {
    if (one.value("step", "") == name) return one;
  }
  return Json();
}

class SluicectlTest : public testing::Test {
 protected:
  struct Result {
    int code = -1;
    std::string output;
    Json json() const { return Json::parse(output, nullptr, false); }
  };

  // Started, with stdout and stderr in one pipe, temporary files in our directory.
  struct Running {
    os::ChildProcess process;
    os::UniqueFd output;
  };

  Running Start(std::vector<std::string> arguments) {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    Running running;
    running.output.reset(ends[0]);
    const os::UniqueFd write_end(ends[1]);
    os::SpawnOptions options;
    options.path = SLUICE_TEST_SLUICECTL;
    options.arguments = std::move(arguments);
    for (char** entry = environ; *entry != nullptr; ++entry) {
      options.environment.emplace_back(*entry);
    }
    options.environment.push_back("TMPDIR=" + directory_.path());
    options.output = write_end.get();
    auto process = os::Spawn(options);
    EXPECT_TRUE(process.ok()) << process.status();
    if (process.ok()) running.process = *std::move(process);
    return running;
  }

  Result Run(const std::vector<std::string>& arguments) {
    Running running = Start(arguments);
    Result result;
    result.output = ReadUntil(running.output.get(), "\x01 nothing prints this");
    const auto status = running.process.WaitAndReap(kTestTimeoutMs);
    if (status.has_value()) {
      result.code = status->signal == 0 ? status->code : -status->signal;
    }
    return result;
  }

  Result RunPrivate(const std::vector<std::string>& command) {
    std::vector<std::string> arguments = {"run", "--private", "--icd", SLUICE_TEST_DRIVER, "--"};
    arguments.insert(arguments.end(), command.begin(), command.end());
    return Run(arguments);
  }

  // The prefix of sluicectl's temporary directories.
  bool LeftNothing() const {
    for (const auto& entry : std::filesystem::directory_iterator(directory_.path())) {
      if (entry.path().filename().string().starts_with("sluice-")) return false;
    }
    return true;
  }

  TestDirectory directory_;
};

// The command's exit code is passed on, a signal as 128 + its number, and its own failures as
// env(1) has them; nothing is left behind by any of them.
TEST_F(SluicectlTest, RunPassesExitCodesOn) {
  EXPECT_EQ(RunPrivate({"/bin/sh", "-c", "exit 0"}).code, 0);
  EXPECT_EQ(RunPrivate({"/bin/sh", "-c", "exit 42"}).code, 42);
  EXPECT_EQ(RunPrivate({"/bin/sh", "-c", "kill -9 $$"}).code, 137);
  EXPECT_EQ(RunPrivate({"/nonexistent"}).code, 127);
  EXPECT_EQ(RunPrivate({"/etc/passwd"}).code, 126);
  EXPECT_TRUE(LeftNothing());
}

// The command sees one driver and the private daemon's endpoint, which answers.
TEST_F(SluicectlTest, RunPointsTheLoaderAtSluice) {
  const Result result =
      RunPrivate({"/bin/sh", "-c",
                  "cat ${OCL_ICD_VENDORS}sluice.icd; ls $OCL_ICD_VENDORS; echo $OCL_ICD_FILENAMES; "
                  "test -S ${SLUICE_ENDPOINT#unix:} && echo socket is there"});
  const std::string driver = SLUICE_TEST_DRIVER;
  EXPECT_EQ(result.output, driver + "\nsluice.icd\n" + driver + "\nsocket is there\n");
  EXPECT_EQ(result.code, 0);
}

// An --icd that no OpenCL loader could use is a wrong flag: the message names the file, what is
// wrong with it and what to write instead, and the command does not run.
TEST_F(SluicectlTest, RunRefusesWhatIsNoDriver) {
  const std::string text = directory_.path() + "/driver.txt";
  std::ofstream(text) << "libsluice_icd.so\n";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"/nonexistent/driver.so", "No such file"},
      {"/dev/null", "too short"},
      {text, "too short"},
      {directory_.path(), "directory"},
      {SLUICE_TEST_SLUICED, "cannot load"},  // A program.
      {"libc.so.6", "No such file"},         // Looked for here, not where the system's are.
      {SLUICE_TEST_OTHER_LIBRARY, "no OpenCL driver"},
  };
  for (const auto& [file, what] : cases) {
    const Result result = Run({"run", "--private", "--icd", file, "--", "/bin/echo", "has run"});
    EXPECT_EQ(result.code, 2) << file;
    for (const std::string& part :
         {std::string("--icd: "), file, what, std::string("leave --icd out")}) {
      EXPECT_NE(result.output.find(part), std::string::npos) << part << " in: " << result.output;
    }
    EXPECT_EQ(result.output.find("has run"), std::string::npos) << result.output;
  }
  EXPECT_TRUE(LeftNothing());
}

// A signal sent to sluicectl ends its command; daemon and directory go with it.
TEST_F(SluicectlTest, SignalsReachTheCommand) {
  Running running =
      Start({"run", "--private", "--icd", SLUICE_TEST_DRIVER, "--", "/bin/sh", "-c",
             "trap 'echo got it; exit 5' TERM; echo ready; while :; do sleep 0.05; done"});
  EXPECT_NE(ReadUntil(running.output.get(), "ready\n").find("ready"), std::string::npos);
  ASSERT_TRUE(running.process.Signal(SIGTERM).ok());
  EXPECT_NE(ReadUntil(running.output.get(), "got it\n").find("got it"), std::string::npos);
  const auto status = running.process.WaitAndReap(kTestTimeoutMs);
  ASSERT_TRUE(status.has_value());
  EXPECT_EQ(status->code, 5);
  EXPECT_TRUE(LeftNothing());
}

// A private daemon that finds no device is told before the command fails for want of one.
TEST_F(SluicectlTest, RunWarnsWithoutDevices) {
  ::setenv("SLUICE_WORKER_TEST", "probe-empty", 1);
  const Result result = RunPrivate({"/bin/true"});
  ::unsetenv("SLUICE_WORKER_TEST");
  EXPECT_NE(result.output.find("no OpenCL platform"), std::string::npos) << result.output;
  EXPECT_EQ(result.code, 0);
}

// Operators' commands print JSON that says what is, and their exit codes tell what went wrong.
TEST_F(SluicectlTest, AdminCommands) {
  BrokerProcess broker(directory_, {});
  TestClient client(broker.socket());
  wire::Welcome welcome;
  ASSERT_TRUE(client.Greet(&welcome));
  wire::SessionOpened opened;
  const os::UniqueFd channel = client.Open(&opened);
  ASSERT_TRUE(channel.valid());
  const std::string endpoint = "unix:" + broker.socket();
  const Json status = Run({"status", "--json", "--endpoint", endpoint}).json();
  EXPECT_EQ(status.value("pid", 0), broker.process().pid());
  EXPECT_EQ(status.value("session_count", 0), 1);
  const Json sessions = Run({"sessions", "--json", "--endpoint", endpoint}).json();
  ASSERT_TRUE(sessions.contains("sessions") && sessions["sessions"].size() == 1) << sessions;
  const std::string id = sessions["sessions"][0]["session"];
  EXPECT_EQ(id.size(), 16u);
  EXPECT_NE(Run({"sessions", "--endpoint", endpoint}).output.find(id), std::string::npos);
  EXPECT_EQ(Run({"kill", "nonsense", "--endpoint", endpoint}).code, 2);
  EXPECT_EQ(Run({"kill", "1", "--endpoint", endpoint}).code, 4);
  EXPECT_EQ(Run({"kill", id, "--endpoint", endpoint}).code, 0);
  EXPECT_TRUE(WaitForEndOfFile(channel.get()));
  EXPECT_EQ(Run({"drain", "--endpoint", endpoint}).code, 0);
  EXPECT_EQ(broker.WaitForExit().code, 0);
  const Result gone = Run({"status", "--json", "--endpoint", endpoint});
  EXPECT_EQ(gone.code, 3);
  EXPECT_TRUE(gone.json().contains("error")) << gone.output;
}

// Wrong flags are 2; help and version are 0 and name the exit codes.
TEST_F(SluicectlTest, Usage) {
  EXPECT_EQ(Run({}).code, 2);
  EXPECT_EQ(Run({"frobnicate"}).code, 2);
  EXPECT_EQ(Run({"run", "--private"}).code, 2);
  EXPECT_EQ(Run({"run", "--private", "--endpoint", "unix:/x", "--", "true"}).code, 2);
  EXPECT_EQ(Run({"devices", "--endpoint", "nonsense"}).code, 2);
  const Result valueless = Run({"--endpoint"});
  EXPECT_EQ(valueless.code, 2);
  EXPECT_NE(valueless.output.find("--endpoint: "), std::string::npos) << valueless.output;
  const Result help = Run({"--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_NE(help.output.find("Exit codes"), std::string::npos);
  EXPECT_EQ(Run({"--version"}).code, 0);
}

// doctor names the first thing that is wrong, and what to do about it, and ends with 1.
TEST_F(SluicectlTest, DoctorFindsWhatIsMissing) {
  const std::string path = directory_.ClientSocket();
  const Result absent = Run({"doctor", "--json", "--endpoint", "unix:" + path});
  EXPECT_EQ(absent.code, 1);
  const Json socket = Step(absent.json(), "daemon's socket");
  EXPECT_EQ(socket.value("result", ""), "failed");
  EXPECT_NE(socket.value("found", "").find("does not exist"), std::string::npos) << absent.output;
  EXPECT_NE(socket.value("advice", "").find("start"), std::string::npos);
  {
    BrokerProcess broker(directory_, {.worker_mode = "probe-fail"});
    const Json report = Run({"doctor", "--json", "--endpoint", "unix:" + path}).json();
    EXPECT_EQ(Step(report, "daemon's socket").value("result", ""), "ok") << report;
    EXPECT_EQ(Step(report, "devices").value("result", ""), "failed");
    broker.Signal(SIGKILL);
    broker.WaitForExit();
  }
  const Json stale = Run({"doctor", "--json", "--endpoint", "unix:" + path}).json();
  EXPECT_NE(Step(stale, "daemon's socket").value("advice", "").find("left its socket behind"),
            std::string::npos)
      << stale;
}

// A socket that listens and never answers is told from one that is not there, with who it may be.
TEST_F(SluicectlTest, DoctorFindsAMuteDaemon) {
  const std::string path = directory_.ClientSocket();
  const auto listener = os::ListenLocal(path, 0600, 16);
  ASSERT_TRUE(listener.ok());
  const std::vector<std::string> flags = {"--json", "--timeout-ms", "100", "--endpoint",
                                          "unix:" + path};
  std::vector<std::string> doctor = flags;
  doctor.insert(doctor.begin(), "doctor");
  const Result report = Run(doctor);
  EXPECT_EQ(report.code, 1);
  const Json socket = Step(report.json(), "daemon's socket");
  EXPECT_EQ(socket.value("result", ""), "failed");
  EXPECT_EQ(socket.value("found", ""), "it takes connections, but does not answer in 100 ms");
  EXPECT_NE(socket.value("advice", "").find("systemctl status sluiced"), std::string::npos)
      << report.output;
  std::vector<std::string> devices = flags;
  devices.insert(devices.begin(), "devices");
  const Result none = Run(devices);
  EXPECT_EQ(none.code, 3);
  EXPECT_NE(none.output.find("takes connections"), std::string::npos) << none.output;
}

}  // namespace
}  // namespace sluice::broker
