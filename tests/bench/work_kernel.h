// SPDX-License-Identifier: Apache-2.0
//
// The kernel of tenants.c and share_load.c, work(out, iterations), whose length is set by its second
// argument, and what launches it. Header only, C, one program.
#pragma once

#include "../system/programs/ocl.h"

static cl_command_queue queue;
static cl_kernel kernel;

// Returns the buffer that is the kernel's first argument, with one zero for each item.
static inline cl_mem set_up_work(size_t items) {
  static const char* source =
      "kernel void work(global uint* out, int n) {\n"
      "  float a = 1.0f;\n"
      "  for (int i = 0; i < n; i++) a = a * 1.0001f + 0.1f;\n"
      "  out[get_global_id(0)] += a > 0.0f ? 1 : 2;\n"
      "}\n";
  cl_int status = CL_SUCCESS;
  cl_device_id device = ocl_device(NULL, NULL, 0);
  cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
  ocl_check(status, "clCreateContext");
  queue = clCreateCommandQueue(context, device, 0, &status);
  ocl_check(status, "clCreateCommandQueue");
  cl_program program = ocl_build(context, device, source);
  kernel = clCreateKernel(program, "work", &status);
  ocl_check(status, "clCreateKernel");
  void* zeros = calloc(items, sizeof(cl_uint));
  cl_mem buffer =
      clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, items * sizeof(cl_uint), zeros, &status);
  free(zeros);
  ocl_check(status, "clCreateBuffer");
  ocl_check(clSetKernelArg(kernel, 0, sizeof(buffer), &buffer), "clSetKernelArg");
  return buffer;
}

static inline void set_iterations(int n) {
  ocl_check(clSetKernelArg(kernel, 1, sizeof(n), &n), "clSetKernelArg");
}

static inline void launch_work(size_t items, cl_event* event) {
  const size_t local = 64;
  ocl_check(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, &local, 0, NULL, event),
            "clEnqueueNDRangeKernel");
}
