// SPDX-License-Identifier: Apache-2.0
//
// Prints how long the process's first platform query took and every platform's name, one per line.
// Used where no daemon answers: the query must be prompt and other drivers must still be there.
#include "ocl.h"

int main(void) {
  cl_platform_id all[16];
  cl_uint count = 0;
  const double start = ocl_seconds();
  const cl_int code = clGetPlatformIDs(16, all, &count);
  printf("query_ms %.3f\ncode %d\ncount %u\n", (ocl_seconds() - start) * 1e3, code, count);
  for (cl_uint i = 0; code == CL_SUCCESS && i < count && i < 16; ++i) {
    char name[256] = "";
    clGetPlatformInfo(all[i], CL_PLATFORM_NAME, sizeof(name), name, NULL);
    printf("platform %s\n", name);
  }
  return 0;
}
