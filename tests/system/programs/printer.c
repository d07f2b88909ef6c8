// SPDX-License-Identifier: Apache-2.0
//
// Launches a kernel that prints its tag, so many times, each behind a user event or not, and ends.
// Its output must be its own, whole and in order: the caller looks.
//
// usage: printer TAG LAUNCHES
#include "ocl.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: printer TAG LAUNCHES\n");
    return 2;
  }
  char source[512];
  snprintf(source, sizeof(source), "kernel void say(int number) { printf(\"%s %%d\\n\", number); }",
           argv[1]);
  const int launches = atoi(argv[2]);
  cl_int code = CL_SUCCESS;
  cl_device_id device = ocl_device_after(0, NULL, NULL, 0);
  cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
  ocl_check(code, "clCreateContext");
  cl_command_queue queue = clCreateCommandQueueWithProperties(context, device, NULL, &code);
  ocl_check(code, "clCreateCommandQueueWithProperties");
  cl_program program = ocl_build(context, device, source);
  cl_kernel kernel = clCreateKernel(program, "say", &code);
  ocl_check(code, "clCreateKernel");
  const size_t one = 1;
  for (cl_int i = 0; i < launches; ++i) {
    cl_event gate = NULL;
    if (i % 5 == 0) {
      gate = clCreateUserEvent(context, &code);
      ocl_check(code, "clCreateUserEvent");
    }
    ocl_check(clSetKernelArg(kernel, 0, sizeof(i), &i), "clSetKernelArg");
    ocl_check(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, NULL, gate != NULL,
                                     gate != NULL ? &gate : NULL, NULL),
              "clEnqueueNDRangeKernel");
    if (gate != NULL) {
      ocl_check(clSetUserEventStatus(gate, CL_COMPLETE), "clSetUserEventStatus");
      clReleaseEvent(gate);
    }
    if (i % 3 == 0) ocl_check(clFinish(queue), "clFinish");
  }
  ocl_check(clFinish(queue), "clFinish");
  clReleaseKernel(kernel);
  clReleaseProgram(program);
  clReleaseCommandQueue(queue);
  clReleaseContext(context);
  return 0;
}
