/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the platform under test says of cl_sluice_shared_resource, and what a context of it answers
 * to who calls the extension all the same, as `key value` lines. Verdicts are the caller's:
 * failure_no_resources.py.
 */
#include <CL/cl_sluice.h>

#include "ocl.h"

static const char kCreate[] = "clCreateFromSharedResourceSLUICE";

static int named(const char* list) { return strstr(list, "cl_sluice_shared_resource") != NULL; }

int main(void) {
  cl_platform_id platform;
  cl_device_id device = ocl_device(&platform, NULL, 0);
  static char list[16384];
  ocl_check(clGetPlatformInfo(platform, CL_PLATFORM_EXTENSIONS, sizeof list, list, NULL), "list");
  printf("platform %d\n", named(list));
  ocl_check(clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, sizeof list, list, NULL), "list");
  printf("device %d\n", named(list));
  static cl_name_version versions[256];
  size_t bytes = 0;
  int versioned = 0;
  ocl_check(
      clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS_WITH_VERSION, sizeof versions, versions, &bytes),
      "versions");
  for (size_t i = 0; i < bytes / sizeof versions[0]; ++i) {
    if (named(versions[i].name))
      versioned = versions[i].version == CL_SLUICE_SHARED_RESOURCE_EXTENSION_VERSION ? 1 : -1;
  }
  printf("versioned %d\n", versioned);

  const char* const names[] = {kCreate, "clEnqueueAcquireSharedResourcesSLUICE",
                               "clEnqueueReleaseSharedResourcesSLUICE"};
  int functions = 0;
  for (int i = 0; i < 3; ++i)
    functions += clGetExtensionFunctionAddressForPlatform(platform, names[i]) != NULL;
  printf("functions %d\n", functions);

  /* As a program does that has the function from another platform. */
  clCreateFromSharedResourceSLUICE_fn create =
      (clCreateFromSharedResourceSLUICE_fn)clGetExtensionFunctionAddress(kCreate);
  cl_int code = CL_SUCCESS;
  cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
  ocl_check(code, "clCreateContext");
  const unsigned char guess[24] = {1};
  if (create != NULL) {
    create(context, CL_MEM_READ_WRITE, guess, 0, &code);
    printf("create %d\n", code);
  }
  clReleaseContext(context);
  return 0;
}
