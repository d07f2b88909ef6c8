// SPDX-License-Identifier: Apache-2.0
#include "broker/os/daemon_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>

#include "platform_linux/system_call_numbers.h"

namespace sluice::os {
namespace {

// Those of StopSignals.
constexpr int kStopSignals[] = {SIGTERM, SIGINT, SIGHUP};

// The exit code that stands for the child's end, if it has ended.
std::optional<int> ReapAll(pid_t child) {
  std::optional<int> code;
  int status = 0;
  while (true) {
    const pid_t ended = ::waitpid(-1, &status, WNOHANG | __WALL);
    if (ended <= 0) return code;
    if (ended != child) continue;
    code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);  // As shells say it.
  }
}

// `signals`, all of them blocked: those to pass on, and SIGCHLD.
[[noreturn]] void StayFirst(pid_t child, const sigset_t& signals) {
  ::prctl(PR_SET_NAME, "sluice-init");
  ::syscall(SYS_close_range, 3U, ~0U, 0U);  // A socket that the daemon gives up is to be closed.
  while (true) {
    int number = 0;
    if (::sigwait(&signals, &number) != 0) continue;
    if (number != SIGCHLD) ::kill(child, number);  // Not reaped yet, so that nobody else has it.
    if (const std::optional<int> code = ReapAll(child)) ::_exit(*code);
  }
}

}  // namespace

void LeaveFirstProcess() {
  if (::getpid() != 1) return;
  sigset_t signals;
  sigset_t before;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGCHLD);
  for (const int number : kStopSignals) ::sigaddset(&signals, number);
  ::sigprocmask(SIG_BLOCK, &signals, &before);
  const pid_t child = ::fork();
  if (child > 0) StayFirst(child, signals);
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  if (child < 0) {
    std::fprintf(stderr, "sluiced: cannot fork, so that orphans stay: %s\n", std::strerror(errno));
    return;
  }
  ::setpgid(0, 0);  // A terminal's SIGINT goes to the first process alone, and comes once.
  const char* const listen_pid = std::getenv("LISTEN_PID");
  if (listen_pid != nullptr && std::strcmp(listen_pid, "1") == 0)
    ::setenv("LISTEN_PID", std::to_string(::getpid()).c_str(), 1);
}

void EnsureStandardDescriptors() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    const int access = fd == STDOUT_FILENO ? O_RDONLY : O_RDWR;
    if (::open("/dev/null", access | O_CLOEXEC) < 0) ::_exit(1);
  }
}

bool ReceiveChildSignals() { return ::signal(SIGCHLD, SIG_DFL) == SIG_IGN; }

void PrepareDaemonProcess() {
  ::umask(::umask(0) & 077);  // The daemon can always open its own files.
  ::signal(SIGPIPE, SIG_IGN);
  sigset_t set;
  ::sigemptyset(&set);
  for (const int number : kStopSignals) ::sigaddset(&set, number);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);  // Before there are threads: all inherit it.
  // A session is 3 descriptors here and a connection 2: the soft limit of 1024 is soon reached.
  rlimit limit;
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
}

void ForgetVariable(const char* name) { ::unsetenv(name); }

int BecomeProgram(const std::string& path, char** argv) {
  ::execv(path.c_str(), argv);
  std::fprintf(stderr, "sluiced: cannot run %s: %s\n", path.c_str(), std::strerror(errno));
  return -1;
}

}  // namespace sluice::os
