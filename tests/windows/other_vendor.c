/* SPDX-License-Identifier: Apache-2.0
 *
 * A driver of another vendor, as far as OpenCL's loader and a program that lists platforms need
 * one: one platform, no device.
 */
#include <CL/cl_icd.h>
#include <string.h>

#define EXPORT __declspec(dllexport)

static cl_icd_dispatch dispatch;
static struct _cl_platform_id { cl_icd_dispatch* dispatch; } platform = {&dispatch};

EXPORT cl_int CL_API_CALL clGetPlatformInfo(cl_platform_id asked, cl_platform_info name,
                                            size_t size, void* value, size_t* needed) {
  const char* text = name == CL_PLATFORM_NAME         ? "Another vendor's"
                     : name == CL_PLATFORM_VERSION    ? "OpenCL 1.2"
                     : name == CL_PLATFORM_EXTENSIONS ? "cl_khr_icd"
                     : name == CL_PLATFORM_PROFILE    ? "FULL_PROFILE"
                                                      : "Other";
  (void)asked;
  if (needed != NULL) *needed = strlen(text) + 1;
  if (value != NULL && size > strlen(text)) strcpy(value, text);
  return CL_SUCCESS;
}

static cl_int CL_API_CALL no_devices(cl_platform_id asked, cl_device_type type, cl_uint entries,
                                     cl_device_id* devices, cl_uint* count) {
  (void)asked, (void)type, (void)entries, (void)devices;
  if (count != NULL) *count = 0;
  return CL_DEVICE_NOT_FOUND;
}

EXPORT cl_int CL_API_CALL clIcdGetPlatformIDsKHR(cl_uint entries, cl_platform_id* platforms,
                                                 cl_uint* count) {
  dispatch.clGetPlatformInfo = &clGetPlatformInfo;
  dispatch.clGetDeviceIDs = &no_devices;
  if (count != NULL) *count = 1;
  if (entries > 0 && platforms != NULL) platforms[0] = &platform;
  return CL_SUCCESS;
}

EXPORT void* CL_API_CALL clGetExtensionFunctionAddress(const char* name) {
  if (strcmp(name, "clIcdGetPlatformIDsKHR") == 0) return (void*)&clIcdGetPlatformIDsKHR;
  if (strcmp(name, "clGetPlatformInfo") == 0) return (void*)&clGetPlatformInfo;
  return NULL;
}
