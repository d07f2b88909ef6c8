// SPDX-License-Identifier: Apache-2.0
#include "broker/os/process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "broker/os/dynamic_library.h"
#include "broker/os/local_socket.h"
#include "tests/unit/platform_linux/open_descriptors.h"

namespace sluice::os {
namespace {

std::string ReadToEnd(int fd) {
  std::string text;
  char buffer[4096];
  while (true) {
    const ssize_t count = ::read(fd, buffer, sizeof(buffer));
    if (count <= 0) return text;
    text.append(buffer, static_cast<size_t>(count));
  }
}

struct Pipe {
  Pipe() {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    read_end.reset(ends[0]);
    write_end.reset(ends[1]);
  }
  UniqueFd read_end;
  UniqueFd write_end;
};

SpawnOptions Shell(const std::string& script) {
  SpawnOptions options;
  options.path = "/bin/sh";
  options.arguments = {"-c", script};
  return options;
}

// The exit code of a child is told as it was, and reaping it frees its descriptor.
TEST(ProcessTest, ReportsExitCodeAndSignal) {
  const int before = CountOpenDescriptors();
  auto child = Spawn(Shell("exit 7"));
  ASSERT_TRUE(child.ok()) << child.status();
  auto status = child->WaitAndReap(-1);
  ASSERT_TRUE(status.has_value());
  EXPECT_EQ(status->code, 7);
  EXPECT_EQ(status->signal, 0);
  EXPECT_FALSE(child->valid());
  EXPECT_EQ(CountOpenDescriptors(), before);

  child = Spawn(Shell("kill -9 $$"));
  ASSERT_TRUE(child.ok());
  status = child->WaitAndReap(-1);
  ASSERT_TRUE(status.has_value());
  EXPECT_EQ(status->signal, SIGKILL);
  EXPECT_NE(status->Describe().find("signal 9"), std::string::npos);
}

// A child has the descriptors it is given at their numbers, 0 to 2, and no other one of its
// parent's.
TEST(ProcessTest, ChildHasExactlyItsDescriptors) {
  Pipe out;
  // Open, and not close-on-exec: exactly what must not come through.
  const UniqueFd stray(::dup(STDERR_FILENO));
  SpawnOptions options = Shell("ls /proc/self/fd >&5");
  options.environment = {"PATH=/usr/bin:/bin"};
  options.descriptors = {{out.write_end.get(), 5}};
  auto child = Spawn(options);
  ASSERT_TRUE(child.ok()) << child.status();
  out.write_end.reset();
  // ls has 0, 1 (which is its pipe, 5, again), 2, 5, and the directory it lists, at the first free
  // one.
  EXPECT_EQ(ReadToEnd(out.read_end.get()), "0\n1\n2\n3\n5\n");
  EXPECT_EQ(child->WaitAndReap(-1)->code, 0);
}

// The standing of a process towards children that it has not made itself.
enum class Parent { kOrdinary, kSubreaper, kProcessOne, kIgnoresChildren };

int OpenDescriptorsOf(pid_t number) {
  int count = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/" + std::to_string(number) + "/fd")) {
    static_cast<void>(entry);
    ++count;
  }
  return count;
}

// Not asked for under a sanitizer, whose shadow counts.
[[maybe_unused]] int64_t OwnPagesOf(pid_t number) {
  std::ifstream file("/proc/" + std::to_string(number) + "/statm");
  int64_t size = -1, resident = -1, shared = -1;
  file >> size >> resident >> shared;
  return resident - shared;
}

// Runs in a process of its own. 0, or the number of the expectation that failed.
int SpawnsUnseen(Parent kind) {
  if (kind == Parent::kSubreaper) ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  if (kind == Parent::kIgnoresChildren) ::signal(SIGCHLD, SIG_IGN);
  sigset_t sigchld;
  ::sigemptyset(&sigchld);
  ::sigaddset(&sigchld, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &sigchld, nullptr);
  std::vector<char> large(64 << 20, 'x');
  auto ends = CreateSocketPair();
  if (!ends.ok()) return 1;
  SpawnOptions options = Shell("cat <&5");  // Until our end is closed.
  options.environment = {"PATH=/usr/bin:/bin"};
  options.descriptors = {{ends->second.get(), 5}};
  const auto keeper = SpawnUnseen(options);
  if (!keeper.ok()) return 2;
  ends->second.reset();
  if (::waitpid(-1, nullptr, WNOHANG) != -1 || errno != ECHILD) return 3;
  // It runs, with nothing of ours.
  siginfo_t info = {};
  if (::waitid(P_PID, static_cast<id_t>(*keeper), &info, WEXITED | WNOHANG | __WCLONE) != 0 ||
      info.si_pid != 0) {
    return 4;
  }
  // (In a new PID namespace /proc shows the old one.)
  if (kind != Parent::kProcessOne && OpenDescriptorsOf(*keeper) != 0) return 5;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  if (kind != Parent::kProcessOne && OwnPagesOf(*keeper) > 200) return 6;
#endif
  ends->first.reset();
  AwaitUnseen(*keeper);
  if (::waitpid(-1, nullptr, __WALL) != -1 || errno != ECHILD) return 7;
  sigset_t pending;
  ::sigpending(&pending);
  if (::sigismember(&pending, SIGCHLD) != 0) return 8;
  options.path = "/nonexistent/program";
  auto more = CreateSocketPair();
  options.descriptors = {{more->second.get(), 5}};
  if (!absl::IsNotFound(SpawnUnseen(options).status())) return 9;
  return ::waitpid(-1, nullptr, __WALL) == -1 && errno == ECHILD ? 0 : 10;
}

int ExitCodeOf(pid_t child) {
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  return WEXITSTATUS(status);
}

// A process that is started unseen is no child to its parent, whatever that is, and leaves nothing.
TEST(ProcessTest, UnseenProcessIsNobodysChild) {
  for (const Parent kind : {Parent::kOrdinary, Parent::kSubreaper, Parent::kIgnoresChildren}) {
    const pid_t parent = ::fork();
    if (parent == 0) ::_exit(SpawnsUnseen(kind));
    EXPECT_EQ(ExitCodeOf(parent), 0) << static_cast<int>(kind);
  }
}

TEST(ProcessTest, UnseenProcessIsNoChildOfProcessOne) {
  constexpr int kNoNamespace = 77;
  const pid_t outside = ::fork();
  if (outside == 0) {
    if (::unshare(CLONE_NEWPID) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0)
      ::_exit(kNoNamespace);
    const pid_t one = ::fork();
    if (one == 0) ::_exit(::getpid() == 1 ? SpawnsUnseen(Parent::kProcessOne) : 11);
    ::_exit(ExitCodeOf(one));
  }
  const int code = ExitCodeOf(outside);
  if (code == kNoNamespace) GTEST_SKIP() << "this system lets us make no PID namespace";
  EXPECT_EQ(code, 0);
}

// A parent that has closed its standard descriptors gives a child all three, and gets none itself.
TEST(ProcessTest, ParentWithoutStandardDescriptors) {
  const pid_t parent = ::fork();
  ASSERT_GE(parent, 0);
  if (parent == 0) {
    for (int fd = 0; fd <= 2; ++fd) ::close(fd);
    SpawnOptions options = Shell("cat <&0 && echo out && echo error >&2 && echo there >&5");
    options.environment = {"PATH=/usr/bin:/bin"};
    auto ends = CreateSocketPair();
    if (!ends.ok()) ::_exit(3);
    options.descriptors = {{ends->second.get(), 5}};
    auto child = Spawn(options);
    if (!child.ok()) ::_exit(4);
    const std::optional<ExitStatus> status = child->WaitAndReap(-1);
    if (status->code != 0) ::_exit(5);
    for (int fd = 0; fd <= 2; ++fd) {
      if (::fcntl(fd, F_GETFD) >= 0) ::_exit(6);
    }
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(parent, &status, 0), parent);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// In a sandbox without /dev, too, a child gets all three descriptors: its input is at its end, and
// what it writes goes nowhere.
TEST(ProcessTest, ParentWithoutDev) {
  constexpr int kNoNamespace = 77;
  const pid_t parent = ::fork();
  ASSERT_GE(parent, 0);
  if (parent == 0) {
    if ((::unshare(CLONE_NEWNS) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("none", "/dev", "tmpfs", 0, nullptr) != 0) {
      ::_exit(kNoNamespace);
    }
    Pipe out;
    SpawnOptions options = Shell("cat && { echo lost; echo lost >&2; echo there >&5; }");
    options.environment = {"PATH=/usr/bin:/bin"};
    options.descriptors = {{out.write_end.get(), 5}};
    options.output = kNoOutput;
    auto child = Spawn(options);
    if (!child.ok()) ::_exit(1);
    out.write_end.reset();
    if (ReadToEnd(out.read_end.get()) != "there\n") ::_exit(2);
    ::_exit(child->WaitAndReap(-1)->code == 0 ? 0 : 3);
  }
  const int code = ExitCodeOf(parent);
  if (code == kNoNamespace) GTEST_SKIP() << "this system lets us make no mount namespace";
  EXPECT_EQ(code, 0);
}

// Descriptors that exchange their numbers both arrive.
TEST(ProcessTest, DescriptorsMaySwapNumbers) {
  Pipe first;
  Pipe second;
  SpawnOptions options = Shell("");
  const int a = first.write_end.get();
  const int b = second.write_end.get();
  options.arguments = {"-c",
                       "echo one >&" + std::to_string(b) + "; echo two >&" + std::to_string(a)};
  options.descriptors = {{a, b}, {b, a}};
  auto child = Spawn(options);
  ASSERT_TRUE(child.ok()) << child.status();
  first.write_end.reset();
  second.write_end.reset();
  EXPECT_EQ(ReadToEnd(first.read_end.get()), "one\n");
  EXPECT_EQ(ReadToEnd(second.read_end.get()), "two\n");
  child->WaitAndReap(-1);
}

// The environment is the given one alone, and no new privileges can be had.
TEST(ProcessTest, EnvironmentAndPrivileges) {
  Pipe out;
  ::setenv("SLUICE_TEST_SECRET", "secret", 1);
  SpawnOptions options = Shell("/usr/bin/env >&5; /bin/grep NoNewPrivs /proc/self/status >&5");
  options.environment = {"GIVEN=1"};
  options.descriptors = {{out.write_end.get(), 5}};
  auto child = Spawn(options);
  ASSERT_TRUE(child.ok()) << child.status();
  out.write_end.reset();
  const std::string text = ReadToEnd(out.read_end.get());
  EXPECT_NE(text.find("GIVEN=1"), std::string::npos);
  EXPECT_EQ(text.find("SLUICE_TEST_SECRET"), std::string::npos);
  EXPECT_NE(text.find("NoNewPrivs:\t1"), std::string::npos);
  child->WaitAndReap(-1);
}

// A file that cannot be executed is an error that says why, with no child and no descriptor left.
TEST(ProcessTest, FailedExecIsReported) {
  const int before = CountOpenDescriptors();
  SpawnOptions options;
  options.path = "/nonexistent/program";
  const auto child = Spawn(options);
  EXPECT_TRUE(absl::IsNotFound(child.status())) << child.status();
  EXPECT_NE(child.status().message().find("/nonexistent/program: exec"), std::string::npos);
  EXPECT_EQ(CountOpenDescriptors(), before);
}

// Ending a child's group ends what the child has started, too.
TEST(ProcessTest, KillGroupReachesGrandchildren) {
  Pipe out;
  SpawnOptions options = Shell("/bin/sleep 1000 & echo started >&5; wait");
  options.descriptors = {{out.write_end.get(), 5}};
  auto child = Spawn(options);
  ASSERT_TRUE(child.ok()) << child.status();
  out.write_end.reset();
  char line[8];
  ASSERT_EQ(::read(out.read_end.get(), line, sizeof(line)), 8);
  EXPECT_FALSE(child->TryReap().has_value());
  child->KillGroup();
  EXPECT_EQ(child->WaitAndReap(-1)->signal, SIGKILL);
  // The grandchild held the pipe: its end is the grandchild's end.
  EXPECT_EQ(ReadToEnd(out.read_end.get()), "");
}

// Waiting for a child that runs is bounded.
TEST(ProcessTest, WaitIsBounded) {
  auto child = Spawn(Shell("exec /bin/sleep 1000"));
  ASSERT_TRUE(child.ok());
  EXPECT_FALSE(child->WaitAndReap(10).has_value());
  EXPECT_TRUE(child->valid());
  ASSERT_TRUE(child->Signal(SIGTERM).ok());
  EXPECT_EQ(child->WaitAndReap(-1)->signal, SIGTERM);
}

bool IsUsers(pid_t process, uid_t uid) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string word; status >> word;) {
    uid_t real = 0;
    if (word == "Uid:" && status >> real) return real == uid;
  }
  return false;
}

// As whoever is `uid` could: the first child of this process that has become that user.
void StopChildOf(uid_t uid) {
  while (true) {
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
      pid_t child = 0;
      if (std::ifstream(task.path() / "children") >> child && IsUsers(child, uid)) {
        ::kill(child, SIGSTOP);
        return;
      }
    }
  }
}

// A child that becomes another user has that user's ids only.
TEST(ProcessTest, ChildBecomesUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const auto user = LookUpUser("nobody");
  ASSERT_TRUE(user.ok()) << user.status();
  Pipe out;
  SpawnOptions options = Shell("/usr/bin/id -u >&5; /usr/bin/id -G >&5");
  options.sandbox.user = *user;
  options.descriptors = {{out.write_end.get(), 5}};
  auto child = Spawn(options);
  ASSERT_TRUE(child.ok()) << child.status();
  out.write_end.reset();
  EXPECT_EQ(ReadToEnd(out.read_end.get()),
            std::to_string(user->uid) + "\n" + std::to_string(user->gid) + "\n");
  child->WaitAndReap(-1);
}

// A process with the child's user can hold it up before its exec. Nobody waits for that, and the
// child is what it was to be once it is let go. (Here by a lease, which keeps others from opening a
// file.)
TEST(ProcessTest, ChildOfAnotherUserIsNotAwaited) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const auto user = LookUpUser("nobody");
  ASSERT_TRUE(user.ok()) << user.status();
  const std::string program = testing::TempDir() + "/sluice-leased";
  std::filesystem::copy_file("/bin/sh", program, std::filesystem::copy_options::overwrite_existing);
  const UniqueFd leased(::open(program.c_str(), O_RDONLY | O_CLOEXEC));
  ::signal(SIGIO, SIG_IGN);
  if (::fcntl(leased.get(), F_SETLEASE, F_WRLCK) != 0) GTEST_SKIP() << "no leases there";
  SpawnOptions options = Shell("exit 7");
  options.path = program;
  options.sandbox.user = *user;
  for (const bool stopped : {false, true}) {
    std::thread stopper;
    if (stopped) stopper = std::thread([&user] { StopChildOf(user->uid); });
    const auto begin = std::chrono::steady_clock::now();
    auto child = Spawn(options);
    // The system breaks a lease after 45 s.
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
    if (stopped) stopper.join();
    ASSERT_TRUE(child.ok()) << child.status();
    EXPECT_FALSE(child->TryReap().has_value());
    if (stopped) {
      child->KillGroup();
      EXPECT_EQ(child->WaitAndReap(-1)->signal, SIGKILL);
    } else {
      ASSERT_EQ(::fcntl(leased.get(), F_SETLEASE, F_UNLCK), 0);
      EXPECT_EQ(child->WaitAndReap(-1)->code, 7);
      ASSERT_EQ(::fcntl(leased.get(), F_SETLEASE, F_WRLCK), 0);
    }
  }
  std::filesystem::remove(program);
}

// A user that does not exist is not found, by name.
TEST(ProcessTest, UnknownUser) {
  const auto user = LookUpUser("no-such-user-here");
  EXPECT_TRUE(absl::IsNotFound(user.status()));
  EXPECT_NE(user.status().message().find("no-such-user-here"), std::string::npos);
}

// A library that is not there is an error with the loader's words; one that is has its symbols.
TEST(ProcessTest, DynamicLibraryOpens) {
  EXPECT_TRUE(absl::IsNotFound(DynamicLibrary::Open("libno-such-library.so.9").status()));
  const auto library = DynamicLibrary::Open("libc.so.6");
  ASSERT_TRUE(library.ok()) << library.status();
  EXPECT_NE(library->Find("malloc"), nullptr);
  EXPECT_EQ(library->Find("no_such_symbol_here"), nullptr);
}

}  // namespace
}  // namespace sluice::os
