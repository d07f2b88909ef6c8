// SPDX-License-Identifier: Apache-2.0
#include "client_icd/threads.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>

namespace sluice {
namespace {

struct Start {
  const char* name;
  std::function<void()> body;
};

void* Main(void* argument) {
  const std::unique_ptr<Start> start(static_cast<Start*>(argument));
  ::pthread_setname_np(::pthread_self(), start->name);
  start->body();
  return nullptr;
}

}  // namespace

bool StartThread(const char* name, std::function<void()> body) {
  auto start = std::make_unique<Start>(Start{name, std::move(body)});
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  // A fault must still reach the application's handler: runtimes use faults in code that their
  // callbacks run.
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP}) ::sigdelset(&all, fault);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);  // Inherited by the new thread.
  pthread_t thread;
  const int error = ::pthread_create(&thread, nullptr, Main, start.get());
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) return false;
  ::pthread_detach(thread);
  static_cast<void>(start.release());  // Main owns it.
  return true;
}

int ThisThreadNumber() { return static_cast<int>(::syscall(SYS_gettid)); }

bool ThreadSleeps(int number) {
  char path[64];
  std::snprintf(path, sizeof(path), "/proc/self/task/%d/stat", number);
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  // "number (name) state ...": the name is one of ours, without parentheses.
  char text[128];
  const ssize_t length = ::read(fd, text, sizeof(text) - 1);
  ::close(fd);
  if (length <= 0) return false;
  text[length] = '\0';
  const char* name_end = std::strchr(text, ')');
  return name_end != nullptr && name_end[1] == ' ' && name_end[2] == 'S';
}

}  // namespace sluice
