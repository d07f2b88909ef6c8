/* SPDX-License-Identifier: Apache-2.0 */
/* An OpenCL loader that has found no .icd file: it lists no platform. */
#include <CL/cl.h>
#include <stddef.h>

cl_int clGetPlatformIDs(cl_uint entries, cl_platform_id* platforms, cl_uint* count) {
  (void)entries, (void)platforms;
  if (count != NULL) *count = 0;
  return -1001; /* CL_PLATFORM_NOT_FOUND_KHR */
}

cl_int clGetPlatformInfo(cl_platform_id platform, cl_platform_info name, size_t size, void* value,
                         size_t* needed) {
  (void)platform, (void)name, (void)size, (void)value, (void)needed;
  return CL_INVALID_PLATFORM;
}

cl_int clGetDeviceIDs(cl_platform_id platform, cl_device_type type, cl_uint entries,
                      cl_device_id* devices, cl_uint* count) {
  (void)platform, (void)type, (void)entries, (void)devices, (void)count;
  return CL_INVALID_PLATFORM;
}

cl_context clCreateContext(const cl_context_properties* properties, cl_uint count,
                           const cl_device_id* devices,
                           void(CL_CALLBACK* notify)(const char*, const void*, size_t, void*),
                           void* data, cl_int* status) {
  (void)properties, (void)count, (void)devices, (void)notify, (void)data;
  if (status != NULL) *status = CL_INVALID_PLATFORM;
  return NULL;
}

cl_int clReleaseContext(cl_context context) {
  (void)context;
  return CL_INVALID_CONTEXT;
}
