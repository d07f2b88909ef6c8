// SPDX-License-Identifier: Apache-2.0
//
// A program that loads the OpenCL loader, uses it, unloads it, and does so again: what a plug-in
// host does. Usage: sluice_conformance_dlopen LIBRARY ROUNDS SUBSTRING. Exit code 0 if every round
// saw the platform and computed.
#include <CL/cl.h>
#include <dlfcn.h>
#include <sanitizer/lsan_interface.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

// There in a build with LeakSanitizer only.
#pragma weak __lsan_disable
#pragma weak __lsan_enable

namespace {

template <typename Function>
Function Find(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

#define CL_FUNCTION(name) const auto name##_fn = Find<decltype(&name)>(library, #name)

cl_platform_id FindPlatform(void* library, const std::string& substring) {
  CL_FUNCTION(clGetPlatformIDs);
  CL_FUNCTION(clGetPlatformInfo);
  cl_uint count = 0;
  // ocl-icd keeps its list of drivers here and does not free it when it is unloaded. That is 231
  // bytes in 9 pieces after three rounds with PoCL alone, 237 with Sluice, whose suffix is two
  // letters longer. A suppression cannot name a library that is gone.
  if (__lsan_disable != nullptr) __lsan_disable();
  const cl_int counted = clGetPlatformIDs_fn(0, nullptr, &count);
  if (__lsan_enable != nullptr) __lsan_enable();
  if (counted != CL_SUCCESS || count == 0) return nullptr;
  std::vector<cl_platform_id> platforms(count);
  clGetPlatformIDs_fn(count, platforms.data(), nullptr);
  for (cl_platform_id platform : platforms) {
    char name[256] = "";
    clGetPlatformInfo_fn(platform, CL_PLATFORM_NAME, sizeof(name), name, nullptr);
    if (std::string(name).find(substring) != std::string::npos) return platform;
  }
  return nullptr;
}

// Writes one number to a buffer and reads it back. Returns what went wrong, or nullptr.
const char* UseOnce(void* library, const std::string& substring) {
  CL_FUNCTION(clGetDeviceIDs);
  CL_FUNCTION(clCreateContext);
  CL_FUNCTION(clCreateCommandQueueWithProperties);
  CL_FUNCTION(clCreateBuffer);
  CL_FUNCTION(clEnqueueWriteBuffer);
  CL_FUNCTION(clEnqueueReadBuffer);
  CL_FUNCTION(clReleaseMemObject);
  CL_FUNCTION(clReleaseCommandQueue);
  CL_FUNCTION(clReleaseContext);
  const cl_platform_id platform = FindPlatform(library, substring);
  if (platform == nullptr) return "the platform is not there";
  cl_device_id device = nullptr;
  if (clGetDeviceIDs_fn(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr) != CL_SUCCESS)
    return "no device";
  const cl_context context = clCreateContext_fn(nullptr, 1, &device, nullptr, nullptr, nullptr);
  if (context == nullptr) return "no context";
  const cl_command_queue queue =
      clCreateCommandQueueWithProperties_fn(context, device, nullptr, nullptr);
  const cl_mem buffer =
      clCreateBuffer_fn(context, CL_MEM_READ_WRITE, sizeof(int), nullptr, nullptr);
  if (queue == nullptr || buffer == nullptr) return "no queue or buffer";
  const int sent = 4711;
  int back = 0;
  clEnqueueWriteBuffer_fn(queue, buffer, CL_FALSE, 0, sizeof(sent), &sent, 0, nullptr, nullptr);
  clEnqueueReadBuffer_fn(queue, buffer, CL_TRUE, 0, sizeof(back), &back, 0, nullptr, nullptr);
  clReleaseMemObject_fn(buffer);
  clReleaseCommandQueue_fn(queue);
  clReleaseContext_fn(context);
  return back == sent ? nullptr : "the number did not come back";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: sluice_conformance_dlopen LIBRARY ROUNDS SUBSTRING\n");
    return 2;
  }
  for (int round = 0; round < std::atoi(argv[2]); ++round) {
    void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      std::fprintf(stderr, "round %d: %s\n", round, dlerror());
      return 1;
    }
    const char* problem = UseOnce(library, argv[3]);
    if (problem != nullptr) {
      std::fprintf(stderr, "round %d: %s\n", round, problem);
      return 1;
    }
    if (dlclose(library) != 0) return 1;
  }
  return 0;
}
