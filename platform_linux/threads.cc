// SPDX-License-Identifier: Apache-2.0
#include "broker/os/threads.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "broker/os/signal_mask.h"

namespace sluice::os {
namespace {

struct Start {
  const char* name;
  std::function<void()> body;
};

// Blocks all signals but faults, which must still reach the application's handler: runtimes use
// faults in code that their callbacks run.
void BlockSignals(sigset_t* before) {
  sigset_t all;
  ::sigfillset(&all);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP}) ::sigdelset(&all, fault);
  ::pthread_sigmask(SIG_SETMASK, &all, before);
}

void* Main(void* argument) {
  const std::unique_ptr<Start> start(static_cast<Start*>(argument));
  ::pthread_setname_np(::pthread_self(), start->name);
  start->body();
  return nullptr;
}

}  // namespace

bool StartThread(const char* name, std::function<void()> body) {
  auto start = std::make_unique<Start>(Start{name, std::move(body)});
  sigset_t before;
  BlockSignals(&before);  // Inherited by the new thread.
  pthread_t thread;
  const int error = ::pthread_create(&thread, nullptr, Main, start.get());
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) return false;
  ::pthread_detach(thread);
  static_cast<void>(start.release());  // Main owns it.
  return true;
}

void StartDetached(std::function<void()> body) { std::thread(std::move(body)).detach(); }

bool AtThreadEnd(void (*function)(void*), void* argument) {
  struct End {
    void (*function)(void*);
    void* argument;
  };
  static const std::optional<pthread_key_t> key = []() -> std::optional<pthread_key_t> {
    pthread_key_t made;
    const int error = ::pthread_key_create(&made, [](void* value) {
      const std::unique_ptr<End> end(static_cast<End*>(value));
      end->function(end->argument);
    });
    return error == 0 ? std::optional(made) : std::nullopt;
  }();
  if (!key.has_value()) return false;
  auto end = std::make_unique<End>(End{function, argument});
  if (::pthread_setspecific(*key, end.get()) != 0) return false;
  static_cast<void>(end.release());  // The key's destructor owns it.
  return true;
}

ScopedNoSignals::ScopedNoSignals() {
  static_assert(sizeof(before_) >= sizeof(sigset_t));
  sigset_t before;
  BlockSignals(&before);
  std::memcpy(before_, &before, sizeof(before));
}

ScopedNoSignals::~ScopedNoSignals() {
  sigset_t before;
  std::memcpy(&before, before_, sizeof(before));
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

ScopedNoCancellation::ScopedNoCancellation() {
  ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_);
}

ScopedNoCancellation::~ScopedNoCancellation() { ::pthread_setcancelstate(before_, nullptr); }

SignalMask::SignalMask() {
  static_assert(sizeof(mask_) >= sizeof(sigset_t));
  sigset_t now;
  ::sigemptyset(&now);
  ::pthread_sigmask(SIG_SETMASK, nullptr, &now);
  std::memcpy(mask_, &now, sizeof(now));
}

ScopedSignalMask::ScopedSignalMask(const SignalMask& mask) {
  sigset_t wanted;
  std::memcpy(&wanted, mask.mask_, sizeof(wanted));
  ::pthread_sigmask(SIG_SETMASK, &wanted, nullptr);
}

ScopedSignalMask::~ScopedSignalMask() {
  sigset_t before;
  std::memcpy(&before, before_.mask_, sizeof(before));
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

bool OtherThreadsWereEnded() { return false; }

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

void AskForPreciseSleeps() { ::prctl(PR_SET_TIMERSLACK, 1000); }

void SleepNs(int64_t nanoseconds) {
  const timespec time = {static_cast<time_t>(nanoseconds / 1'000'000'000),
                         static_cast<decltype(timespec::tv_nsec)>(nanoseconds % 1'000'000'000)};
  ::nanosleep(&time, nullptr);
}

void LetOthersRun() { ::sched_yield(); }

int UsableProcessors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return ::sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

int RunnableThreads() {
  const int file = ::open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 1;
  char text[128] = {};
  const ssize_t bytes = ::read(file, text, sizeof(text) - 1);
  ::close(file);
  int running = 1;
  if (bytes <= 0 || std::sscanf(text, "%*f %*f %*f %d/", &running) != 1) return 1;
  return running;
}

}  // namespace sluice::os
