// SPDX-License-Identifier: Apache-2.0
//
// Makes a context on each device of the platform under test, and again once a line has come: what
// each call answers, as `before_N code` and `after_N code` lines, and READY between. Before each,
// CL_DEVICE_AVAILABLE, as `before_available_N` and so on. Verdicts are the caller's.
#include "ocl.h"

enum { kMost = 8 };

static void try_all(const char* when, const cl_device_id* devices, cl_uint count) {
  for (cl_uint i = 0; i < count; ++i) {
    cl_bool available = 77;
    cl_int code =
        clGetDeviceInfo(devices[i], CL_DEVICE_AVAILABLE, sizeof(available), &available, NULL);
    printf("%s_available_%u %d\n", when, i, code == CL_SUCCESS ? (int)available : code);
    cl_context context = clCreateContext(NULL, 1, &devices[i], NULL, NULL, &code);
    printf("%s_%u %d\n", when, i, code);
    if (context != NULL) clReleaseContext(context);
  }
}

int main(void) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  cl_platform_id platform;
  ocl_device(&platform, NULL, 0);
  cl_device_id devices[kMost];
  cl_uint count = 0;
  ocl_check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, kMost, devices, &count), "clGetDeviceIDs");
  for (cl_uint i = 0; i < count; ++i) {
    char name[256] = "";
    clGetDeviceInfo(devices[i], CL_DEVICE_NAME, sizeof(name), name, NULL);
    printf("name_%u %s\n", i, name);
  }
  try_all("before", devices, count);
  printf("READY\n");
  getchar();
  try_all("after", devices, count);
  return 0;
}
