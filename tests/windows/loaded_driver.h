// SPDX-License-Identifier: Apache-2.0
// The driver as a plug-in host loads it, without a loader.
#pragma once

#include <CL/cl_icd.h>
#include <windows.h>

#include <cstring>

struct Loaded {
  HMODULE library = nullptr;
  cl_uint count = 0;
  cl_platform_id platform = nullptr;
  const cl_icd_dispatch* cl = nullptr;
};

// False if the library is no driver.
inline bool Load(const char* path, Loaded* out) {
  out->library = LoadLibraryA(path);
  if (out->library == nullptr) return false;
  const auto find = reinterpret_cast<decltype(cl_icd_dispatch::clGetExtensionFunctionAddress)>(
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

inline bool Open(const Loaded& driver, Session* session) {
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

inline bool Computes(const Loaded& driver, const Session& session, int number) {
  int back = 0;
  driver.cl->clEnqueueFillBuffer(session.queue, session.buffer, &number, sizeof(number), 0,
                                 sizeof(number), 0, nullptr, nullptr);
  driver.cl->clEnqueueReadBuffer(session.queue, session.buffer, CL_TRUE, 0, sizeof(back), &back, 0,
                                 nullptr, nullptr);
  return back == number;
}

inline void Close(const Loaded& driver, const Session& session) {
  driver.cl->clReleaseMemObject(session.buffer);
  driver.cl->clReleaseCommandQueue(session.queue);
  driver.cl->clReleaseContext(session.context);
}
