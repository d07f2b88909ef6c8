// SPDX-License-Identifier: Apache-2.0
//
// An application whose device may be lost. It has a context, and says READY. Then it answers each
// line of its standard input with two lines. `old CODE` is of a launch in that context and its
// clFinish, unless the line is `new`. `new CODE` is of a context that is made now, and a launch in
// it. It ends with its input.
//
// usage: again
#include "ocl.h"

struct Made {
  cl_context context;
  cl_command_queue queue;
  cl_program program;
  cl_kernel kernel;
};

static cl_int make(cl_device_id device, struct Made* made) {
  const char* source = "kernel void nothing(void) {}";
  cl_int code = CL_SUCCESS;
  made->context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
  if (code == CL_SUCCESS)
    made->queue = clCreateCommandQueueWithProperties(made->context, device, NULL, &code);
  if (code == CL_SUCCESS)
    made->program = clCreateProgramWithSource(made->context, 1, &source, NULL, &code);
  if (code == CL_SUCCESS) code = clBuildProgram(made->program, 1, &device, "", NULL, NULL);
  if (code == CL_SUCCESS) made->kernel = clCreateKernel(made->program, "nothing", &code);
  return code;
}

static cl_int launch(const struct Made* made) {
  const size_t one = 1;
  const cl_int code =
      clEnqueueNDRangeKernel(made->queue, made->kernel, 1, NULL, &one, NULL, 0, NULL, NULL);
  return code == CL_SUCCESS ? clFinish(made->queue) : code;
}

static void drop(struct Made* made) {
  if (made->kernel != NULL) clReleaseKernel(made->kernel);
  if (made->program != NULL) clReleaseProgram(made->program);
  if (made->queue != NULL) clReleaseCommandQueue(made->queue);
  if (made->context != NULL) clReleaseContext(made->context);
}

int main(void) {
  const cl_device_id device = ocl_device(NULL, NULL, 0);
  struct Made first = {0};
  ocl_check(make(device, &first), "the first context");
  ocl_check(launch(&first), "the first launch");
  printf("READY\n");
  fflush(stdout);
  for (char line[16]; fgets(line, sizeof(line), stdin) != NULL;) {
    struct Made later = {0};
    if (strncmp(line, "new", 3) != 0) printf("old %d\n", launch(&first));
    cl_int code = make(device, &later);
    if (code == CL_SUCCESS) code = launch(&later);
    drop(&later);
    printf("new %d\n", code);
    fflush(stdout);
  }
  drop(&first);
  return 0;
}
