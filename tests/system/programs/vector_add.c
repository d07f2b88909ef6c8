// SPDX-License-Identifier: Apache-2.0
//
// The smallest whole OpenCL program: adds two vectors on the device and checks every element.
// Prints the platform, the device and the sum, so that a person sees that it ran and where.
//
// usage: vector_add [N]   (on the platform so many behind the one under test; 0)
#include "ocl.h"

enum { kCount = 1 << 16 };

static const char* kSource =
    "kernel void add(global const float* a, global const float* b, global float* c) {"
    "  size_t i = get_global_id(0); c[i] = a[i] + b[i]; }";

static cl_mem filled_buffer(cl_context context, const float* from) {
  cl_int code = CL_SUCCESS;
  const cl_mem_flags flags =
      from != NULL ? CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR : CL_MEM_WRITE_ONLY;
  cl_mem buffer = clCreateBuffer(context, flags, kCount * sizeof(float), (void*)from, &code);
  ocl_check(code, "clCreateBuffer");
  return buffer;
}

int main(int argc, char** argv) {
  static float a[kCount], b[kCount], c[kCount];
  for (int i = 0; i < kCount; ++i) {
    a[i] = (float)i;
    b[i] = (float)(2 * i);
  }
  char platform_name[256], device_name[256] = "";
  cl_device_id device =
      ocl_device_after(argc > 1 ? atoi(argv[1]) : 0, NULL, platform_name, sizeof(platform_name));
  clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof(device_name), device_name, NULL);
  cl_int code = CL_SUCCESS;
  cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
  ocl_check(code, "clCreateContext");
  cl_command_queue queue = clCreateCommandQueueWithProperties(context, device, NULL, &code);
  ocl_check(code, "clCreateCommandQueueWithProperties");
  cl_program program = ocl_build(context, device, kSource);
  cl_kernel kernel = clCreateKernel(program, "add", &code);
  ocl_check(code, "clCreateKernel");
  cl_mem buffers[3] = {filled_buffer(context, a), filled_buffer(context, b),
                       filled_buffer(context, NULL)};
  for (cl_uint i = 0; i < 3; ++i) {
    ocl_check(clSetKernelArg(kernel, i, sizeof(cl_mem), &buffers[i]), "clSetKernelArg");
  }
  const size_t global = kCount;
  ocl_check(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, NULL, 0, NULL, NULL),
            "clEnqueueNDRangeKernel");
  ocl_check(clEnqueueReadBuffer(queue, buffers[2], CL_TRUE, 0, sizeof(c), c, 0, NULL, NULL),
            "clEnqueueReadBuffer");
  double sum = 0;
  for (int i = 0; i < kCount; ++i) {
    if (c[i] != a[i] + b[i]) {
      fprintf(stderr, "element %d is %g, expected %g\n", i, c[i], a[i] + b[i]);
      return 1;
    }
    sum += c[i];
  }
  for (int i = 0; i < 3; ++i) clReleaseMemObject(buffers[i]);
  clReleaseKernel(kernel);
  clReleaseProgram(program);
  clReleaseCommandQueue(queue);
  clReleaseContext(context);
  printf("platform: %s\ndevice: %s\nadded %d pairs, sum %.0f, every element right\n", platform_name,
         device_name, kCount, sum);
  return 0;
}
