// SPDX-License-Identifier: Apache-2.0
//
// Opens a session and forks a child that never touches OpenCL, as a program that starts helpers
// does. Prints READY; parent and child end when their input does. For failure_kill.py.
#include <unistd.h>

#include "ocl.h"

int main(void) {
  cl_device_id device = ocl_device(NULL, NULL, 0);
  cl_int code = CL_SUCCESS;
  cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
  ocl_check(code, "clCreateContext");
  cl_command_queue queue = clCreateCommandQueueWithProperties(context, device, NULL, &code);
  ocl_check(code, "clCreateCommandQueueWithProperties");
  ocl_check(clFinish(queue), "clFinish");
  const pid_t child = fork();
  if (child < 0) ocl_check(CL_OUT_OF_RESOURCES, "fork");
  if (child > 0) {
    printf("READY\n");
    fflush(stdout);
  }
  char byte;
  return read(STDIN_FILENO, &byte, 1) < 0;
}
