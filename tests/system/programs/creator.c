// SPDX-License-Identifier: Apache-2.0
//
// Makes and releases many objects of every kind that a creation need not wait for, and reads a
// result that depends on all of them. Prints `result N`.
//
// usage: creator ROUNDS
#include "ocl.h"

static const char* kSource =
    "kernel void more(global int* sum) { sum[0] += 1; }"
    "kernel void twice(global int* sum) { sum[0] += 2; }";

static void round_of(cl_context context, cl_device_id device, cl_command_queue launches,
                     cl_program program, cl_mem sum) {
  cl_int code = CL_SUCCESS;
  const int zero = 0;
  cl_command_queue queue = clCreateCommandQueueWithProperties(context, device, NULL, &code);
  ocl_check(code, "clCreateCommandQueueWithProperties");
  cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof(zero),
                                 (void*)&zero, &code);
  ocl_check(code, "clCreateBuffer");
  const cl_buffer_region region = {0, sizeof(zero)};
  cl_mem part = clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
  ocl_check(code, "clCreateSubBuffer");
  const cl_image_format format = {CL_RGBA, CL_UNORM_INT8};
  cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = 4, .image_height = 4};
  cl_mem image = clCreateImage(context, CL_MEM_READ_ONLY, &format, &desc, NULL, &code);
  ocl_check(code, "clCreateImage");
  cl_sampler sampler =
      clCreateSampler(context, CL_FALSE, CL_ADDRESS_CLAMP_TO_EDGE, CL_FILTER_NEAREST, &code);
  ocl_check(code, "clCreateSampler");
  cl_kernel kernels[2];
  kernels[0] = clCreateKernel(program, "more", &code);
  ocl_check(code, "clCreateKernel");
  kernels[1] = clCreateKernel(program, "twice", &code);
  ocl_check(code, "clCreateKernel");
  cl_program unused = clCreateProgramWithSource(context, 1, &kSource, NULL, &code);
  ocl_check(code, "clCreateProgramWithSource");
  const size_t one = 1;
  for (int i = 0; i < 2; ++i) {
    ocl_check(clSetKernelArg(kernels[i], 0, sizeof(cl_mem), i == 0 ? &sum : &part),
              "clSetKernelArg");
    ocl_check(clEnqueueNDRangeKernel(launches, kernels[i], 1, NULL, &one, NULL, 0, NULL, NULL),
              "clEnqueueNDRangeKernel");
    clReleaseKernel(kernels[i]);
  }
  clReleaseProgram(unused);
  clReleaseSampler(sampler);
  clReleaseMemObject(image);
  clReleaseMemObject(part);
  clReleaseMemObject(buffer);
  clReleaseCommandQueue(queue);
}

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? atoi(argv[1]) : 1;
  char platform_name[256];
  cl_device_id device = ocl_device_after(0, NULL, platform_name, sizeof(platform_name));
  cl_int code = CL_SUCCESS;
  cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
  ocl_check(code, "clCreateContext");
  cl_command_queue queue = clCreateCommandQueueWithProperties(context, device, NULL, &code);
  ocl_check(code, "clCreateCommandQueueWithProperties");
  cl_program program = ocl_build(context, device, kSource);
  int result = 0;
  cl_mem sum = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof(result),
                              &result, &code);
  ocl_check(code, "clCreateBuffer");
  for (int i = 0; i < rounds; ++i) round_of(context, device, queue, program, sum);
  ocl_check(clEnqueueReadBuffer(queue, sum, CL_TRUE, 0, sizeof(result), &result, 0, NULL, NULL),
            "clEnqueueReadBuffer");
  clReleaseMemObject(sum);
  clReleaseProgram(program);
  clReleaseCommandQueue(queue);
  clReleaseContext(context);
  printf("result %d\n", result);
  return result == rounds ? 0 : 1;
}
