// SPDX-License-Identifier: Apache-2.0
//
// Does with a driver what the Khronos loader does, step by step, since Debian 12 has ocl-icd only.
// It finds the driver's functions as that one does (loader/icd.c: the library by dlopen,
// clIcdGetPlatformIDsKHR through clGetExtensionFunctionAddress alone, every call through the
// dispatch table that a handle begins with). It lets the application compute through it, and closes
// the library again, many times over.
//
// usage: loader_rules LIBRARY ROUNDS
#include <CL/cl_icd.h>
#include <dlfcn.h>

#include "ocl.h"

// Every handle begins so (cl_khr_icd).
struct _cl_platform_id {
  cl_icd_dispatch* dispatch;
};
static const cl_icd_dispatch* dispatch_of(const void* handle) {
  return *(cl_icd_dispatch* const*)handle;
}

// As the loader's own typedefs.
typedef void*(CL_API_CALL* GetFunctionAddress)(const char* name);
typedef cl_int(CL_API_CALL* GetPlatformIds)(cl_uint count, cl_platform_id* platforms, cl_uint* all);

static void need(int good, const char* what) {
  if (good) return;
  fprintf(stderr, "%s\n", what);
  exit(1);
}

static cl_platform_id find_platform(void* library) {
  GetFunctionAddress get = (GetFunctionAddress)dlsym(library, "clGetExtensionFunctionAddress");
  need(get != NULL, "clGetExtensionFunctionAddress is not exported");
  need(dlsym(library, "clGetPlatformInfo") != NULL, "clGetPlatformInfo is not exported");
  need(get("clNoSuchFunctionSLUICE") == NULL, "an unknown name has an address");
  GetPlatformIds get_platforms = (GetPlatformIds)get("clIcdGetPlatformIDsKHR");
  need(get_platforms != NULL, "clIcdGetPlatformIDsKHR is not found");
  cl_uint count = 0;
  ocl_check(get_platforms(0, NULL, &count), "clIcdGetPlatformIDsKHR");
  need(count > 0 && count < 16, "no platform");
  cl_platform_id platforms[16];
  ocl_check(get_platforms(count, platforms, NULL), "clIcdGetPlatformIDsKHR");
  char suffix[64] = "";
  for (cl_uint i = 0; i < count; ++i) {
    need(platforms[i] != NULL && dispatch_of(platforms[i]) != NULL, "a platform without a table");
    ocl_check(dispatch_of(platforms[i])
                  ->clGetPlatformInfo(platforms[i], CL_PLATFORM_ICD_SUFFIX_KHR, sizeof(suffix),
                                      suffix, NULL),
              "CL_PLATFORM_ICD_SUFFIX_KHR");
    need(strcmp(suffix, "SLUICE") == 0, "the suffix is not SLUICE");
  }
  return platforms[0];
}

// Each object is called through its own table, as the loader's entry points do.
static void compute(cl_platform_id platform) {
  const cl_icd_dispatch* cl = dispatch_of(platform);
  cl_int code = CL_SUCCESS;
  cl_device_id device = NULL;
  ocl_check(cl->clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "clGetDeviceIDs");
  const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM, (cl_context_properties)platform,
                                              0};
  cl_context context =
      dispatch_of(device)->clCreateContext(properties, 1, &device, NULL, NULL, &code);
  ocl_check(code, "clCreateContext");
  cl_command_queue queue =
      dispatch_of(context)->clCreateCommandQueueWithProperties(context, device, NULL, &code);
  ocl_check(code, "clCreateCommandQueueWithProperties");
  const char* source = "kernel void k(global int* p) { p[get_global_id(0)] *= 2; }";
  cl_program program =
      dispatch_of(context)->clCreateProgramWithSource(context, 1, &source, NULL, &code);
  ocl_check(code, "clCreateProgramWithSource");
  ocl_check(dispatch_of(program)->clBuildProgram(program, 1, &device, "", NULL, NULL),
            "clBuildProgram");
  cl_kernel kernel = dispatch_of(program)->clCreateKernel(program, "k", &code);
  ocl_check(code, "clCreateKernel");
  int numbers[64];
  for (int i = 0; i < 64; ++i) numbers[i] = i;
  cl_mem buffer = dispatch_of(context)->clCreateBuffer(
      context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof(numbers), numbers, &code);
  ocl_check(code, "clCreateBuffer");
  ocl_check(dispatch_of(kernel)->clSetKernelArg(kernel, 0, sizeof(buffer), &buffer),
            "clSetKernelArg");
  const size_t size = 64;
  cl_event event = NULL;
  ocl_check(dispatch_of(queue)->clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &size, NULL, 0, NULL,
                                                       &event),
            "clEnqueueNDRangeKernel");
  ocl_check(dispatch_of(event)->clWaitForEvents(1, &event), "clWaitForEvents");
  ocl_check(dispatch_of(queue)->clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof(numbers),
                                                    numbers, 0, NULL, NULL),
            "clEnqueueReadBuffer");
  for (int i = 0; i < 64; ++i) need(numbers[i] == 2 * i, "a wrong number");
  dispatch_of(event)->clReleaseEvent(event);
  dispatch_of(buffer)->clReleaseMemObject(buffer);
  dispatch_of(kernel)->clReleaseKernel(kernel);
  dispatch_of(program)->clReleaseProgram(program);
  dispatch_of(queue)->clReleaseCommandQueue(queue);
  dispatch_of(context)->clReleaseContext(context);
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  for (int round = 0; round < atoi(argv[2]); ++round) {
    void* library = dlopen(argv[1], RTLD_NOW);
    need(library != NULL, "the library does not load");
    compute(find_platform(library));
    need(dlclose(library) == 0, "dlclose fails");
  }
  printf("rounds %s, every number right\n", argv[2]);
  return 0;
}
