// SPDX-License-Identifier: Apache-2.0
//
// Shared by all small OpenCL programs of the system tests and benchmarks: the platform under test,
// and an end with a reason when a call that must succeed does not. Header only, C and C++, one
// thread; trusts its environment:
//   SLUICE_TEST_KIND      ring or network: only Sluice's platforms; native: only others; unset: all
//   SLUICE_TEST_PLATFORM  of those, the first whose name contains this text; unset: the first
#pragma once

#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define OCL_SLUICE_PREFIX "Sluice ("

// Ends the program with a reason when `code` is an error; for calls that must succeed.
static inline void ocl_check(cl_int code, const char* what) {
  if (code == CL_SUCCESS) return;
  fprintf(stderr, "%s failed with %d\n", what, code);
  exit(1);
}

// Seconds on a clock that never goes back.
static inline double ocl_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

// True when the platform of this name is the one that the environment asks for; by hand, any is.
static inline int ocl_platform_wanted(const char* name) {
  const char* kind = getenv("SLUICE_TEST_KIND");
  const char* text = getenv("SLUICE_TEST_PLATFORM");
  const int is_sluice = strncmp(name, OCL_SLUICE_PREFIX, strlen(OCL_SLUICE_PREFIX)) == 0;
  const int wants_sluice = kind != NULL && strcmp(kind, "native") != 0;
  return (kind == NULL || is_sluice == wants_sluice) &&
         (text == NULL || strstr(name, text) != NULL);
}

// The platform under test, or the one `skip` behind it, and its first device; ends the program when
// there is none. `name` may be NULL.
static inline cl_device_id ocl_device_after(int skip, cl_platform_id* platform, char* name,
                                            size_t name_size) {
  cl_platform_id all[16];
  cl_uint count = 0;
  ocl_check(clGetPlatformIDs(16, all, &count), "clGetPlatformIDs");
  for (cl_uint i = 0; i < count && i < 16; ++i) {
    char text[256] = "";
    ocl_check(clGetPlatformInfo(all[i], CL_PLATFORM_NAME, sizeof(text), text, NULL),
              "clGetPlatformInfo");
    if (!ocl_platform_wanted(text) || skip-- > 0) continue;
    cl_device_id device;
    ocl_check(clGetDeviceIDs(all[i], CL_DEVICE_TYPE_ALL, 1, &device, NULL), "clGetDeviceIDs");
    if (platform != NULL) *platform = all[i];
    if (name != NULL) snprintf(name, name_size, "%s", text);
    return device;
  }
  fprintf(
      stderr,
      "none of the %u platforms is the one that SLUICE_TEST_KIND and SLUICE_TEST_PLATFORM name\n",
      count);
  exit(1);
}

static inline cl_device_id ocl_device(cl_platform_id* platform, char* name, size_t name_size) {
  return ocl_device_after(0, platform, name, name_size);
}

// A built program; ends the process with the build log when the build fails.
static inline cl_program ocl_build(cl_context context, cl_device_id device, const char* source) {
  cl_int code = CL_SUCCESS;
  cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &code);
  ocl_check(code, "clCreateProgramWithSource");
  if (clBuildProgram(program, 1, &device, "", NULL, NULL) == CL_SUCCESS) return program;
  static char log[16384];
  clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, sizeof(log) - 1, log, NULL);
  fprintf(stderr, "clBuildProgram failed:\n%s\n", log);
  exit(1);
}
