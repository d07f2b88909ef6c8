// SPDX-License-Identifier: Apache-2.0
// Launches a kernel that waits for a user event, and another behind it; says so, and sets the event when a line comes
// on stdin. "DONE" if both then end, with the right result.
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>

static void check(cl_int status, const char* call) {
  if (status == CL_SUCCESS) return;
  fprintf(stderr, "stuck: %s: %d\n", call, status);
  exit(1);
}

int main(void) {
  const char* source = "kernel void add(global uint* out) { out[0] += 1; }";
  const size_t one = 1;
  cl_platform_id platform;
  cl_device_id device;
  cl_int status;
  check(clGetPlatformIDs(1, &platform, NULL), "clGetPlatformIDs");
  check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "clGetDeviceIDs");
  cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
  check(status, "clCreateContext");
  cl_command_queue queue = clCreateCommandQueue(context, device, 0, &status);
  check(status, "clCreateCommandQueue");
  cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &status);
  check(status, "clCreateProgramWithSource");
  check(clBuildProgram(program, 1, &device, "", NULL, NULL), "clBuildProgram");
  cl_kernel kernel = clCreateKernel(program, "add", &status);
  check(status, "clCreateKernel");
  cl_uint value = 5;
  cl_mem buffer = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, sizeof(value), &value, &status);
  check(status, "clCreateBuffer");
  check(clSetKernelArg(kernel, 0, sizeof(buffer), &buffer), "clSetKernelArg");
  cl_event go = clCreateUserEvent(context, &status);
  check(status, "clCreateUserEvent");
  check(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, NULL, 1, &go, NULL),
        "clEnqueueNDRangeKernel");
  check(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, NULL, 0, NULL, NULL),
        "clEnqueueNDRangeKernel");
  check(clFlush(queue), "clFlush");
  printf("READY\n");
  fflush(stdout);
  getchar();
  check(clSetUserEventStatus(go, CL_COMPLETE), "clSetUserEventStatus");
  check(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof(value), &value, 0, NULL, NULL),
        "clEnqueueReadBuffer");
  printf(value == 7 ? "DONE\n" : "WRONG %u\n", value);
  return value == 7 ? 0 : 1;
}
