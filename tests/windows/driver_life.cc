// SPDX-License-Identifier: Apache-2.0
//
// What a plug-in host does to the driver: loads it, uses it, lets it go, and ends without a
// release.
//
//   driver_life DRIVER.dll none            no daemon is there: no platform, soon, and nothing
//                                          written
//   driver_life DRIVER.dll rounds N        N times: load, compute, let go
//   driver_life DRIVER.dll leave           ends with a session, a queue and a callback in flight
//   driver_life DRIVER.dll exit            callbacks end their threads; others run nevertheless
//
// Exit code 0 if all was as it should be; else a line on stdout says what was not.
#include <CL/cl_icd.h>
#include <windows.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

namespace {

int Fail(const char* what) {
  std::printf("%s\n", what);
  return 1;
}

struct Loaded {
  HMODULE library = nullptr;
  cl_uint count = 0;
  cl_platform_id platform = nullptr;
  const cl_icd_dispatch* cl = nullptr;
};

// False if the library is no driver.
bool Load(const char* path, Loaded* out) {
  out->library = LoadLibraryA(path);
  if (out->library == nullptr) return false;
  const auto find = reinterpret_cast<cl_api_clGetExtensionFunctionAddress>(
      reinterpret_cast<void*>(GetProcAddress(out->library, "clGetExtensionFunctionAddress")));
  if (find == nullptr) return false;
  const auto get = reinterpret_cast<clIcdGetPlatformIDsKHR_fn>(find("clIcdGetPlatformIDsKHR"));
  if (get == nullptr) return false;
  get(0, nullptr, &out->count);
  if (out->count == 0) return true;
  get(1, &out->platform, nullptr);
  std::memcpy(&out->cl, out->platform, sizeof(out->cl));  // The dispatch pointer comes first.
  return true;
}

struct Session {
  cl_context context = nullptr;
  cl_command_queue queue = nullptr;
  cl_mem buffer = nullptr;
};

bool Open(const Loaded& driver, Session* session) {
  cl_device_id device = nullptr;
  if (driver.cl->clGetDeviceIDs(driver.platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr) != 0)
    return false;
  session->context = driver.cl->clCreateContext(nullptr, 1, &device, nullptr, nullptr, nullptr);
  if (session->context == nullptr) return false;
  session->queue = driver.cl->clCreateCommandQueue(session->context, device, 0, nullptr);
  session->buffer =
      driver.cl->clCreateBuffer(session->context, CL_MEM_READ_WRITE, sizeof(int), nullptr, nullptr);
  return session->queue != nullptr && session->buffer != nullptr;
}

bool Computes(const Loaded& driver, const Session& session, int number) {
  int back = 0;
  driver.cl->clEnqueueFillBuffer(session.queue, session.buffer, &number, sizeof(number), 0,
                                 sizeof(number), 0, nullptr, nullptr);
  driver.cl->clEnqueueReadBuffer(session.queue, session.buffer, CL_TRUE, 0, sizeof(back), &back, 0,
                                 nullptr, nullptr);
  return back == number;
}

void Close(const Loaded& driver, const Session& session) {
  driver.cl->clReleaseMemObject(session.buffer);
  driver.cl->clReleaseCommandQueue(session.queue);
  driver.cl->clReleaseContext(session.context);
}

// The specification lets a platform be asked for at any time; design: under 50 ms without a daemon.
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

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[2], "none") == 0) return WithoutDaemon(argv[1]);
  if (argc == 4 && std::strcmp(argv[2], "rounds") == 0) return Rounds(argv[1], std::atoi(argv[3]));
  if (argc == 3 && std::strcmp(argv[2], "leave") == 0) return Leave(argv[1]);
  if (argc == 3 && std::strcmp(argv[2], "exit") == 0) return Exit(argv[1]);
  return 2;
}
