// SPDX-License-Identifier: Apache-2.0
//
// Creates, uses and releases every kind of object over and over, so that the caller can see whether
// the worker or the client grows. Stops at each tenth of the way, prints `AT n` and waits for a
// line on standard input, which is when the caller reads the memory of both processes.
//
// usage: churn CYCLES
#include <unistd.h>

#include "ocl.h"

static const char* kSource =
    "kernel void twice(global uint* data) { data[get_global_id(0)] *= 2; }";

static void pause_at(int cycle) {
  printf("AT %d\n", cycle);
  fflush(stdout);
  char byte;
  while (read(STDIN_FILENO, &byte, 1) > 0 && byte != '\n') {
  }
}

// One life of each object kind; the launched kernel's result is checked.
static void cycle(cl_context context, cl_device_id device, cl_program program) {
  cl_int code = CL_SUCCESS;
  cl_uint value = 21;
  const size_t one = 1;
  cl_command_queue queue = clCreateCommandQueueWithProperties(context, device, NULL, &code);
  ocl_check(code, "clCreateCommandQueueWithProperties");
  cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, 4096, NULL, &code);
  ocl_check(code, "clCreateBuffer");
  cl_kernel kernel = clCreateKernel(program, "twice", &code);
  ocl_check(code, "clCreateKernel");
  cl_event gate = clCreateUserEvent(context, &code);
  ocl_check(code, "clCreateUserEvent");
  cl_event written = NULL, ran = NULL;
  ocl_check(clEnqueueWriteBuffer(queue, buffer, CL_FALSE, 0, 4, &value, 1, &gate, &written),
            "write");
  ocl_check(clSetKernelArg(kernel, 0, sizeof(cl_mem), &buffer), "clSetKernelArg");
  ocl_check(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, NULL, 1, &written, &ran),
            "launch");
  ocl_check(clSetUserEventStatus(gate, CL_COMPLETE), "clSetUserEventStatus");
  cl_uint result = 0;
  ocl_check(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, 4, &result, 1, &ran, NULL), "read");
  if (result != 42) {
    fprintf(stderr, "the kernel made %u of 21\n", result);
    exit(1);
  }
  clReleaseEvent(ran);
  clReleaseEvent(written);
  clReleaseEvent(gate);
  clReleaseKernel(kernel);
  clReleaseMemObject(buffer);
  clReleaseCommandQueue(queue);
}

int main(int argc, char** argv) {
  const int cycles = argc == 2 ? atoi(argv[1]) : 0;
  if (cycles < 10) {
    fprintf(stderr, "usage: churn CYCLES (at least 10)\n");
    return 2;
  }
  cl_device_id device = ocl_device(NULL, NULL, 0);
  cl_int code = CL_SUCCESS;
  cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
  ocl_check(code, "clCreateContext");
  cl_program program = ocl_build(context, device, kSource);
  for (int i = 1; i <= cycles; ++i) {
    cycle(context, device, program);
    if (i % (cycles / 10) == 0) pause_at(i);
  }
  clReleaseProgram(program);
  clReleaseContext(context);
  printf("DONE\n");
  return 0;
}
