// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/harness/child_process.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <map>

#include "tests/conformance/harness/harness.h"

extern char** environ;

namespace sluice::conformance {
namespace {

std::map<std::string, ChildScene>& Scenes() {
  static std::map<std::string, ChildScene> scenes;
  return scenes;
}

// Collects the pipe until its last writer is gone or the time is over. Returns false when it is
// over.
bool Collect(int fd, std::chrono::steady_clock::time_point deadline, std::string* output) {
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    pollfd waiter{fd, POLLIN, 0};
    if (poll(&waiter, 1, static_cast<int>(left.count())) <= 0) continue;
    char bytes[4096];
    const ssize_t got = read(fd, bytes, sizeof(bytes));
    if (got <= 0) return true;
    output->append(bytes, static_cast<size_t>(got));
  }
}

}  // namespace

bool RegisterChildScene(const char* name, ChildScene scene) {
  return Scenes().emplace(name, scene).second;
}

int RunChildScene(const std::string& name) {
  const auto found = Scenes().find(name);
  return found == Scenes().end() ? 125 : found->second();
}

ChildResult RunInChild(const std::string& name, std::chrono::seconds limit) {
  ChildResult result;
  int ends[2];
  if (pipe(ends) != 0) return result;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  posix_spawn_file_actions_addclose(&actions, ends[1]);
  // The whole group is ended on a timeout, since a scene may have forked.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  std::string program = "/proc/self/exe";
  std::string scene = "--child=" + name;
  std::string platform = "--platform=" + TheHarness().platform_name;
  char* argv[] = {program.data(), scene.data(), platform.data(), nullptr};
  pid_t pid = 0;
  const int spawned = posix_spawn(&pid, program.c_str(), &actions, &attributes, argv, environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (spawned == 0) {
    result.timed_out = !Collect(ends[0], std::chrono::steady_clock::now() + limit, &result.output);
    if (result.timed_out) kill(-pid, SIGKILL);
    int status = 0;
    waitpid(pid, &status, 0);
    if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  }
  close(ends[0]);
  return result;
}

bool AllowThreads(bool allow) {
  constexpr uid_t kNobody = 65534;
  if (getuid() == 0 && setuid(kNobody) != 0) return false;
  rlimit limit;
  getrlimit(RLIMIT_NPROC, &limit);
  limit.rlim_cur = allow ? limit.rlim_max : 0;
  setrlimit(RLIMIT_NPROC, &limit);
  pthread_t thread;
  const bool started = pthread_create(
                           &thread, nullptr, [](void*) -> void* { return nullptr; }, nullptr) == 0;
  if (started) pthread_join(thread, nullptr);
  return started == allow;
}

void EndThisProcess() { std::abort(); }

}  // namespace sluice::conformance
