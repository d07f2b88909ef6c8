// SPDX-License-Identifier: Apache-2.0
//
// A plug-in host's use of the driver: loads it, uses it, lets it go, and ends without a release.
//
//   driver_life DRIVER.dll none            no daemon is there: no platform, soon, and nothing
//                                          written
//   driver_life DRIVER.dll rounds N        N times: load, compute, let go
//   driver_life DRIVER.dll leave           ends with a session, a queue and a callback in flight
//   driver_life DRIVER.dll exit            callbacks end their threads; others run nevertheless
//   driver_life DRIVER.dll busy            returns from main while threads open and close sessions
//   driver_life DRIVER.dll late            calls that wait when libraries are told of the
//                                          process's end
//
// Exit code 0 if all was as it should be; else a line on stdout says what was not.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "tests/windows/loaded_driver.h"

namespace {

int Fail(const char* what) {
  std::printf("%s\n", what);
  return 1;
}

// The specification lets a platform be asked for at any time: it takes under 50 ms without a
// daemon.
int WithoutDaemon(const char* path) {
  Loaded driver;
  const ULONGLONG before = GetTickCount64();
  if (!Load(path, &driver)) return Fail("the driver cannot be loaded");
  if (driver.count != 0) return Fail("a platform without a daemon");
  if (GetTickCount64() - before > 5000) return Fail("no platform, but late");
  FreeLibrary(driver.library);
  return 0;
}

int Rounds(const char* path, int rounds) {
  for (int round = 1; round <= rounds; ++round) {
    Loaded driver;
    Session session;
    if (!Load(path, &driver) || driver.count == 0) return Fail("no platform");
    if (!Open(driver, &session)) return Fail("no session");
    if (!Computes(driver, session, round)) return Fail("the number did not come back");
    Close(driver, session);
    // Its threads run on: it must stay where it is.
    FreeLibrary(driver.library);
  }
  return 0;
}

void CL_CALLBACK Never(cl_event, cl_int, void*) {}

int Leave(const char* path) {
  Loaded driver;
  Session session;
  if (!Load(path, &driver) || driver.count == 0) return Fail("no platform");
  if (!Open(driver, &session) || !Computes(driver, session, 7)) return Fail("no session");
  const cl_event gate = driver.cl->clCreateUserEvent(session.context, nullptr);
  const int number = 8;
  cl_event filled = nullptr;
  driver.cl->clEnqueueFillBuffer(session.queue, session.buffer, &number, sizeof(number), 0,
                                 sizeof(number), 1, &gate, &filled);
  driver.cl->clSetEventCallback(filled, CL_COMPLETE, &Never, nullptr);
  driver.cl->clFlush(session.queue);
  return 0;
}

void CL_CALLBACK EndThread(cl_event, cl_int, void*) { ExitThread(0); }

void CL_CALLBACK Tell(cl_event, cl_int, void* told) { ReleaseSemaphore(told, 1, nullptr); }

// Another thread runs what waits behind a callback that ends its own, and what comes later.
int Exit(const char* path) {
  Loaded driver;
  Session session;
  if (!Load(path, &driver) || driver.count == 0) return Fail("no platform");
  if (!Open(driver, &session)) return Fail("no session");
  const HANDLE told = CreateSemaphoreW(nullptr, 0, 100, nullptr);
  for (int round = 0; round < 20; ++round) {
    for (const auto first : {&EndThread, &Tell}) {
      const int tells = first == &Tell ? 2 : 1;
      const cl_event event = driver.cl->clCreateUserEvent(session.context, nullptr);
      driver.cl->clSetEventCallback(event, CL_COMPLETE, first, told);
      driver.cl->clSetEventCallback(event, CL_COMPLETE, &EndThread, told);
      driver.cl->clSetEventCallback(event, CL_COMPLETE, &Tell, told);
      driver.cl->clSetUserEventStatus(event, CL_COMPLETE);
      for (int i = 0; i < tells; ++i) {
        if (WaitForSingleObject(told, 20'000) != WAIT_OBJECT_0)
          return Fail("a callback did not run after one that had ended its thread");
      }
      driver.cl->clReleaseEvent(event);
    }
  }
  if (!Computes(driver, session, 9)) return Fail("the number did not come back");
  Close(driver, session);
  return 0;
}

int Busy(const char* path) {
  static Loaded driver;
  if (!Load(path, &driver) || driver.count == 0) return Fail("no platform");
  const HANDLE closed = CreateSemaphoreW(nullptr, 0, 1'000'000, nullptr);
  for (int i = 0; i < 2; ++i) {
    CreateThread(
        nullptr, 0,
        [](void* told) -> DWORD {
          while (true) {
            Session session;
            if (!Open(driver, &session) || !Computes(driver, session, 3)) continue;
            const cl_event event = driver.cl->clCreateUserEvent(session.context, nullptr);
            driver.cl->clSetEventCallback(event, CL_COMPLETE, &EndThread, nullptr);
            driver.cl->clSetUserEventStatus(event, CL_COMPLETE);
            driver.cl->clReleaseEvent(event);
            Close(driver, session);
            ReleaseSemaphore(told, 1, nullptr);
          }
        },
        closed, 0, nullptr);
  }
  for (int i = 0; i < 8; ++i) {
    if (WaitForSingleObject(closed, 20'000) != WAIT_OBJECT_0) return Fail("no session");
  }
  return 0;
}

// The session is a library's, which uses it once more when it is told of the process's end.
int Late(const char* path, const char* library) {
  const HMODULE loaded = LoadLibraryA(library);
  if (loaded == nullptr) return Fail("the library cannot be loaded");
  const auto start = reinterpret_cast<bool (*)(const char*)>(
      reinterpret_cast<void*>(GetProcAddress(loaded, "Start")));
  return start != nullptr && start(path) ? 0 : Fail("no session");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[2], "none") == 0) return WithoutDaemon(argv[1]);
  if (argc == 4 && std::strcmp(argv[2], "rounds") == 0) return Rounds(argv[1], std::atoi(argv[3]));
  if (argc == 3 && std::strcmp(argv[2], "leave") == 0) return Leave(argv[1]);
  if (argc == 3 && std::strcmp(argv[2], "exit") == 0) return Exit(argv[1]);
  if (argc == 3 && std::strcmp(argv[2], "busy") == 0) return Busy(argv[1]);
  if (argc == 4 && std::strcmp(argv[2], "late") == 0) return Late(argv[1], argv[3]);
  return 2;
}
