// SPDX-License-Identifier: Apache-2.0
// Launches a kernel that waits for a user event, and another behind it; says so, and sets the event when a line comes
// on stdin. "DONE" if both then end, with the right result.
#include "ocl.h"

int main(void) {
  const char* source = "kernel void add(global uint* out) { out[0] += 1; }";
  const size_t one = 1;
  cl_int status = CL_SUCCESS;
  cl_device_id device = ocl_device(NULL, NULL, 0);
  cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
  ocl_check(status, "clCreateContext");
  cl_command_queue queue = clCreateCommandQueue(context, device, 0, &status);
  ocl_check(status, "clCreateCommandQueue");
  cl_program program = ocl_build(context, device, source);
  cl_kernel kernel = clCreateKernel(program, "add", &status);
  ocl_check(status, "clCreateKernel");
  cl_uint value = 5;
  cl_mem buffer = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, sizeof(value), &value, &status);
  ocl_check(status, "clCreateBuffer");
  ocl_check(clSetKernelArg(kernel, 0, sizeof(buffer), &buffer), "clSetKernelArg");
  cl_event go = clCreateUserEvent(context, &status);
  ocl_check(status, "clCreateUserEvent");
  ocl_check(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, NULL, 1, &go, NULL),
            "clEnqueueNDRangeKernel");
  ocl_check(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, NULL, 0, NULL, NULL),
            "clEnqueueNDRangeKernel");
  ocl_check(clFlush(queue), "clFlush");
  printf("READY\n");
  fflush(stdout);
  getchar();
  ocl_check(clSetUserEventStatus(go, CL_COMPLETE), "clSetUserEventStatus");
  ocl_check(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof(value), &value, 0, NULL, NULL),
            "clEnqueueReadBuffer");
  printf(value == 7 ? "DONE\n" : "WRONG %u\n", value);
  return value == 7 ? 0 : 1;
}
