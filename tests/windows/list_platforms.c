/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints the name of each platform that OpenCL's loader gives, and of how many devices it has.
 */
#include <CL/cl.h>
#include <stdio.h>

int main(void) {
  cl_platform_id platforms[16];
  cl_uint count = 0;
  if (clGetPlatformIDs(16, platforms, &count) != CL_SUCCESS) count = 0;
  for (cl_uint i = 0; i < count; ++i) {
    char name[256] = "";
    cl_uint devices = 0;
    clGetPlatformInfo(platforms[i], CL_PLATFORM_NAME, sizeof(name), name, NULL);
    if (clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, 0, NULL, &devices) != CL_SUCCESS)
      devices = 0;
    printf("%s, %u devices\n", name, devices);
  }
  return 0;
}
