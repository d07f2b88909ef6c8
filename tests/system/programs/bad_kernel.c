// SPDX-License-Identifier: Apache-2.0
//
// A tenant whose kernel does harm (failure_kernels.py). Prints `key value` lines.
//
// usage: bad_kernel wild      writes where nothing is: prints what clFinish says, and whether a new
//                             context in this process computes right
//        bad_kernel endless   says READY when a kernel that never ends is under way, and waits
//        bad_kernel finish    launches the same and says what clFinish returned
#include <stdint.h>
#include <unistd.h>

#include "ocl.h"

static const char* kSource =
    "kernel void wild(global uint* out, ulong where) {"
    "  *(global volatile uint*)(where + get_global_id(0) * 4) = 1; out[0] = 1; }"
    "kernel void endless(global volatile uint* out) { while (out[0] == 0) out[1] += 1; }"
    "kernel void add(global uint* out) { out[get_global_id(0)] += 7; }";
enum { kItems = 1024 };

struct Tenant {
  cl_context context;
  cl_command_queue queue;
  cl_program program;
  cl_mem buffer;
};

static struct Tenant set_up(cl_device_id device) {
  struct Tenant tenant;
  cl_int code = CL_SUCCESS;
  tenant.context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
  ocl_check(code, "clCreateContext");
  tenant.queue = clCreateCommandQueueWithProperties(tenant.context, device, NULL, &code);
  ocl_check(code, "clCreateCommandQueueWithProperties");
  const char* source = kSource;
  tenant.program = clCreateProgramWithSource(tenant.context, 1, &source, NULL, &code);
  ocl_check(code, "clCreateProgramWithSource");
  ocl_check(clBuildProgram(tenant.program, 1, &device, "", NULL, NULL), "clBuildProgram");
  static uint32_t zeros[kItems];
  tenant.buffer = clCreateBuffer(tenant.context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                                 sizeof(zeros), zeros, &code);
  ocl_check(code, "clCreateBuffer");
  return tenant;
}

static void tear_down(struct Tenant* tenant) {
  clReleaseMemObject(tenant->buffer);
  clReleaseProgram(tenant->program);
  clReleaseCommandQueue(tenant->queue);
  clReleaseContext(tenant->context);
}

static void launch(const struct Tenant* tenant, const char* name, const cl_ulong* where) {
  cl_int code = CL_SUCCESS;
  cl_kernel kernel = clCreateKernel(tenant->program, name, &code);
  ocl_check(code, "clCreateKernel");
  ocl_check(clSetKernelArg(kernel, 0, sizeof(cl_mem), &tenant->buffer), "clSetKernelArg");
  if (where != NULL) ocl_check(clSetKernelArg(kernel, 1, sizeof(*where), where), "clSetKernelArg");
  const size_t items = kItems;
  ocl_check(clEnqueueNDRangeKernel(tenant->queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL),
            "clEnqueueNDRangeKernel");
  clReleaseKernel(kernel);
}

static int computes_right(const struct Tenant* tenant) {
  uint32_t back[kItems] = {0};
  launch(tenant, "add", NULL);
  ocl_check(clEnqueueReadBuffer(tenant->queue, tenant->buffer, CL_TRUE, 0, sizeof(back), back, 0,
                                NULL, NULL),
            "clEnqueueReadBuffer");
  for (int i = 0; i < kItems; ++i)
    if (back[i] != 7) return 0;
  return 1;
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  if (strcmp(mode, "wild") != 0 && strcmp(mode, "endless") != 0 && strcmp(mode, "finish") != 0) {
    fprintf(stderr, "usage: bad_kernel wild|endless|finish\n");
    return 2;
  }
  cl_device_id device = ocl_device(NULL, NULL, 0);
  struct Tenant tenant = set_up(device);
  if (strcmp(mode, "endless") == 0) {
    launch(&tenant, "endless", NULL);
    ocl_check(clFlush(tenant.queue), "clFlush");
    printf("READY endless\n");
    fflush(stdout);
    char byte;
    while (read(STDIN_FILENO, &byte, 1) > 0) {
    }
    _exit(0);  // clReleaseCommandQueue need not return before the kernel has.
  }
  if (strcmp(mode, "finish") == 0) {
    launch(&tenant, "endless", NULL);
    const cl_int finished = clFinish(tenant.queue);
    printf("finish %d\n", finished);
    return finished != CL_SUCCESS;
  }
  const cl_ulong nowhere = 0x10;  // In the first page, which no driver maps.
  launch(&tenant, "wild", &nowhere);
  printf("finish %d\n", clFinish(tenant.queue));
  tear_down(&tenant);
  struct Tenant fresh = set_up(device);
  printf("fresh_right %d\n", computes_right(&fresh));
  tear_down(&fresh);
  return 0;
}
