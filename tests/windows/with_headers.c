// SPDX-License-Identifier: Apache-2.0
// Builds a program that includes one header by a folder of its options and one by its whole path,
// as a worker must find them under paths of its own. The header that both name says that it is read
// once.
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>
#include <windows.h>

static void check(const char* what, cl_int status) {
  if (status == CL_SUCCESS) return;
  printf("%s: %d\n", what, status);
  exit(1);
}

static void write_file(const char* folder, const char* name, const char* text) {
  char path[2 * MAX_PATH];
  snprintf(path, sizeof(path), "%s%s", folder, name);
  FILE* file = fopen(path, "wb");
  if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0) check(path, -1);
}

int main(void) {
  char folder[MAX_PATH + 1];
  GetTempPathA(sizeof(folder), folder);
  write_file(folder, "sluice-once.h", "#pragma once\nint one(void) { return 1; }\n");
  write_file(folder, "sluice-two.h",
             "#include \"sluice-once.h\"\nint two(void) { return 2 * one(); }\n");
  char text[4 * MAX_PATH];
  snprintf(text, sizeof(text),
           "#include \"sluice-two.h\"\n#include \"%ssluice-once.h\"\n"
           "kernel void add(global int* out) { *out = one() + two(); }\n",
           folder);
  char options[2 * MAX_PATH];
  folder[lstrlenA(folder) - 1] = '\0';
  snprintf(options, sizeof(options), "-I %s", folder);

  cl_platform_id platform;
  cl_device_id device;
  cl_int status = clGetPlatformIDs(1, &platform, NULL);
  check("clGetPlatformIDs", status);
  check("clGetDeviceIDs", clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
  cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
  check("clCreateContext", status);
  cl_command_queue queue = clCreateCommandQueue(context, device, 0, &status);
  check("clCreateCommandQueue", status);
  const char* source = text;
  cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &status);
  check("clCreateProgramWithSource", status);
  status = clBuildProgram(program, 1, &device, options, NULL, NULL);
  if (status != CL_SUCCESS) {
    static char log[16384];
    clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, sizeof(log) - 1, log, NULL);
    printf("%s\n%s\n%s\n", options, text, log);
  }
  check("clBuildProgram", status);
  cl_kernel kernel = clCreateKernel(program, "add", &status);
  check("clCreateKernel", status);
  cl_mem out = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof(cl_int), NULL, &status);
  check("clCreateBuffer", status);
  check("clSetKernelArg", clSetKernelArg(kernel, 0, sizeof(cl_mem), &out));
  const size_t one = 1;
  check("clEnqueueNDRangeKernel",
        clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, NULL, 0, NULL, NULL));
  cl_int sum = 0;
  check("clEnqueueReadBuffer",
        clEnqueueReadBuffer(queue, out, CL_TRUE, 0, sizeof(sum), &sum, 0, NULL, NULL));
  printf("sum %d\n", sum);
  return sum == 3 ? 0 : 1;
}
