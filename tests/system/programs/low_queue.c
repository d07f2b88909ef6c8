// SPDX-License-Identifier: Apache-2.0
//
// Has a queue of low priority, then one of medium priority beside it, then the former alone again;
// says READY at each and waits for a line. Verdicts are the caller's: queue_hints.py.
#include <CL/cl_ext.h>

#include "ocl.h"

static cl_command_queue make_queue(cl_context context, cl_device_id device,
                                   cl_queue_properties priority) {
  const cl_queue_properties list[] = {CL_QUEUE_PRIORITY_KHR, priority, 0};
  cl_int code = CL_SUCCESS;
  cl_command_queue queue = clCreateCommandQueueWithProperties(context, device, list, &code);
  ocl_check(code, "clCreateCommandQueueWithProperties");
  return queue;
}

static void wait_for_line(const char* state) {
  printf("READY %s\n", state);
  getchar();
}

int main(void) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  cl_device_id device = ocl_device(NULL, NULL, 0);
  cl_int code = CL_SUCCESS;
  cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
  ocl_check(code, "clCreateContext");
  cl_command_queue low = make_queue(context, device, CL_QUEUE_PRIORITY_LOW_KHR);
  wait_for_line("low");
  cl_command_queue medium = make_queue(context, device, CL_QUEUE_PRIORITY_MED_KHR);
  wait_for_line("medium");
  clReleaseCommandQueue(medium);
  clFinish(low);
  wait_for_line("again");
  clReleaseCommandQueue(low);
  clReleaseContext(context);
  return 0;
}
