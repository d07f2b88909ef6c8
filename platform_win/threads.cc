// SPDX-License-Identifier: Apache-2.0
#include "broker/os/threads.h"

#include <cxxabi.h>
#include <pthread.h>
#include <windows.h>

#include <algorithm>
#include <bit>
#include <exception>
#include <memory>
#include <new>
#include <utility>

#include "broker/os/signal_mask.h"
#include "platform_win/wide_text.h"

namespace sluice::os {
namespace {

struct Start {
  const char* name;
  std::function<void()> body;
};

// Only if Windows has such names (10 1607).
void NameThisThread(const char* name) {
  using SetDescription = HRESULT(WINAPI*)(HANDLE, const wchar_t*);
  static const auto set_description = reinterpret_cast<SetDescription>(reinterpret_cast<void*>(
      ::GetProcAddress(::GetModuleHandleW(L"kernel32.dll"), "SetThreadDescription")));
  if (set_description != nullptr) set_description(::GetCurrentThread(), ToWide(name).c_str());
}

void* Main(void* argument) {
  const std::unique_ptr<Start> start(static_cast<Start*>(argument));
  NameThisThread(start->name);
  start->body();
  return nullptr;
}

// Makes a thread that is detached from its start; pthread_detach, and with it std::thread::detach,
// must not be used. winpthreads reuses a detached thread's record as soon as the thread's function
// has returned. The thread's own slot still points there until the system has told its libraries of
// the thread's end, and then clears the record. If another thread has got the record in between, it
// loses it: before it has begun, so that it never runs, or later. A thread that was made detached
// clears its slot first, and a joined one has ended altogether.
bool CreateDetached(void* (*main)(void*), void* argument) {
  pthread_attr_t attributes;
  if (::pthread_attr_init(&attributes) != 0) return false;
  ::pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t thread;
  const int error = ::pthread_create(&thread, &attributes, main, argument);
  ::pthread_attr_destroy(&attributes);
  return error == 0;
}

// A thread_local object whose destructor is still to run.
struct ThreadObject {
  void (*destroy)(void*);
  void* object;
  ThreadObject* older;
};

void DestroyObjects(void* newest) {
  for (auto* next = static_cast<ThreadObject*>(newest); next != nullptr;) {
    const std::unique_ptr<ThreadObject> object(next);
    next = object->older;
    object->destroy(object->object);
  }
}

// Must be made before any other key: at a thread's end keys are destroyed in the order in which
// they were made, and one of them owns the memory of the thread's objects. So its constructor has a
// priority that is reserved for the compiler; protobuf has the next one.
pthread_key_t objects_key;
int objects_key_error = -1;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wprio-ctor-dtor"
__attribute__((constructor(100))) void MakeObjectsKey() {
  objects_key_error = ::pthread_key_create(&objects_key, &DestroyObjects);
}
#pragma GCC diagnostic pop

// Windows 10 1803; this mingw's headers do not have it.
constexpr DWORD kHighResolution = 0x2;  // CREATE_WAITABLE_TIMER_HIGH_RESOLUTION

// The sleeping thread's own timer.
struct Timer {
  Timer() : handle(::CreateWaitableTimerExW(nullptr, nullptr, kHighResolution, TIMER_ALL_ACCESS)) {
    if (handle == nullptr) handle = ::CreateWaitableTimerW(nullptr, TRUE, nullptr);
  }
  ~Timer() {
    if (handle != nullptr) ::CloseHandle(handle);
  }
  HANDLE handle;
};

}  // namespace
}  // namespace sluice::os

// The compiler calls this for each thread_local object that has a destructor (C++ ABI). It replaces
// libstdc++'s, for all code that is linked with this file. libstdc++'s frees the objects' memory
// before it destroys them. It also calls FreeLibrary, which takes the loader's lock, while it has
// winpthreads' lock; a thread that ends has the loader's and waits for winpthreads', so that both
// hang. At the process's end nothing is destroyed.
int __cxxabiv1::__cxa_thread_atexit(void (*destroy)(void*), void* object, void*) noexcept {
  if (sluice::os::objects_key_error != 0) return -1;
  auto* const older =
      static_cast<sluice::os::ThreadObject*>(::pthread_getspecific(sluice::os::objects_key));
  auto* const newest = new (std::nothrow) sluice::os::ThreadObject{destroy, object, older};
  return newest != nullptr && ::pthread_setspecific(sluice::os::objects_key, newest) == 0 ? 0 : -1;
}

namespace sluice::os {

// A pthread, since the compiler's runtime destroys thread-local objects only when one of those
// ends.
bool StartThread(const char* name, std::function<void()> body) {
  auto start = std::make_unique<Start>(Start{name, std::move(body)});
  if (!CreateDetached(Main, start.get())) return false;
  static_cast<void>(start.release());  // Main owns it.
  return true;
}

void StartDetached(std::function<void()> body) {
  auto run = std::make_unique<std::function<void()>>(std::move(body));
  const auto main = [](void* argument) -> void* {
    const std::unique_ptr<std::function<void()>> run(static_cast<std::function<void()>*>(argument));
    (*run)();
    return nullptr;
  };
  if (!CreateDetached(main, run.get())) std::terminate();
  static_cast<void>(run.release());  // The thread owns it.
}

// Not a thread_local object: ExitThread unwinds nothing, and destroys such objects inside the
// loader's lock. The callbacks of fiber-local storage come before that.
bool AtThreadEnd(void (*function)(void*), void* argument) {
  struct End {
    void (*function)(void*);
    void* argument;
  };
  static const DWORD slot = ::FlsAlloc([](void* value) {
    const std::unique_ptr<End> end(static_cast<End*>(value));
    if (end != nullptr && !OtherThreadsWereEnded()) end->function(end->argument);
  });
  if (slot == FLS_OUT_OF_INDEXES) return false;
  auto end = std::make_unique<End>(End{function, argument});
  if (!::FlsSetValue(slot, end.get())) return false;
  static_cast<void>(end.release());  // The callback owns it.
  return true;
}

ScopedNoSignals::ScopedNoSignals() = default;
ScopedNoSignals::~ScopedNoSignals() = default;
ScopedNoCancellation::ScopedNoCancellation() = default;
ScopedNoCancellation::~ScopedNoCancellation() = default;
SignalMask::SignalMask() = default;
ScopedSignalMask::ScopedSignalMask(const SignalMask&) {}
ScopedSignalMask::~ScopedSignalMask() = default;

// Windows tells libraries of the process's end (and runs their atexit functions) once all threads
// but one are gone.
bool OtherThreadsWereEnded() {
  using InProgress = BOOLEAN(NTAPI*)();
  static const auto in_progress = reinterpret_cast<InProgress>(reinterpret_cast<void*>(
      ::GetProcAddress(::GetModuleHandleW(L"ntdll.dll"), "RtlDllShutdownInProgress")));
  return in_progress != nullptr && in_progress();
}

int ThisThreadNumber() { return static_cast<int>(::GetCurrentThreadId()); }

bool ThreadSleeps(int) {
  SleepNs(1'000'000);
  return true;
}

void AskForPreciseSleeps() {}  // Its timers are precise from the start.

void SleepNs(int64_t nanoseconds) {
  thread_local const Timer timer;
  LARGE_INTEGER due;
  due.QuadPart = -std::max<int64_t>(1, nanoseconds / 100);  // Negative: from now.
  if (timer.handle == nullptr ||
      !::SetWaitableTimer(timer.handle, &due, 0, nullptr, nullptr, FALSE)) {
    ::Sleep(static_cast<DWORD>(nanoseconds / 1'000'000 + 1));
    return;
  }
  ::WaitForSingleObject(timer.handle, INFINITE);
}

void LetOthersRun() { ::SwitchToThread(); }

int UsableProcessors() {
  DWORD_PTR mine = 0;
  DWORD_PTR all = 0;
  if (!::GetProcessAffinityMask(::GetCurrentProcess(), &mine, &all)) return 1;
  return std::max(1, std::popcount(mine));
}

int RunnableThreads() { return 1; }  // Windows counts processor time, not waiting threads.

}  // namespace sluice::os
