// SPDX-License-Identifier: Apache-2.0
// The driver's own threads inside a stranger's process: detached, named for debuggers, with every
// signal but faults blocked, so that the application's signal handlers do not run on them. And the
// system's processors. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>

namespace sluice::os {

// False if the system has no thread to give.
bool StartThread(const char* name, std::function<void()> body);

// For programs of ours: as std::thread(body).detach(), ending the process if there is no thread to
// give. On Windows that call itself loses threads (platform_win/threads.cc), so that nobody uses
// it.
void StartDetached(std::function<void()> body);

// Calls `function` with `argument` when the calling thread ends: by its return, pthread_exit or
// ExitThread, but not by the process's end. Once per thread. False: it cannot.
bool AtThreadEnd(void (*function)(void*), void* argument);

// While it lives, threads that a library starts on this thread's behalf get no signals but faults.
// Nothing where there are no signals.
class ScopedNoSignals {
 public:
  ScopedNoSignals();
  ~ScopedNoSignals();
  ScopedNoSignals(const ScopedNoSignals&) = delete;
  ScopedNoSignals& operator=(const ScopedNoSignals&) = delete;

 private:
  uint64_t before_[16] = {};  // The mask that the thread had.
};

// While it lives, a cancellation of the calling thread (pthread_cancel) waits. Nothing where
// threads cannot be cancelled.
class ScopedNoCancellation {
 public:
  ScopedNoCancellation();
  ~ScopedNoCancellation();
  ScopedNoCancellation(const ScopedNoCancellation&) = delete;
  ScopedNoCancellation& operator=(const ScopedNoCancellation&) = delete;

 private:
  int before_ = 0;
};

// True once the process ends and its other threads have been ended (Windows), wherever they were
// and with the locks that they held: do not wait for them. False where threads go on until the end.
bool OtherThreadsWereEnded();

// The calling thread's number, and whether the thread of that number sleeps in a system call. If
// that cannot be told, waits for a millisecond, in which it would get there, and returns true.
int ThisThreadNumber();
bool ThreadSleeps(int number);

// Has the calling thread's sleeps end on time, to the microsecond where the system can.
void AskForPreciseSleeps();
void SleepNs(int64_t nanoseconds);

// Yields the processor to another thread that waits for it.
void LetOthersRun();

// Processors that the process may run on, at least 1.
int UsableProcessors();
// Threads of the whole machine that run or could run right now, this one among them; 1 where that
// cannot be known.
int RunnableThreads();

}  // namespace sluice::os
