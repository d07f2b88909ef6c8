// SPDX-License-Identifier: Apache-2.0
// A layer of the OpenCL loader for the worker's driver, which gives every device
// cl_khr_initialize_memory: no driver at hand has it. A context that asks for it is made without,
// and the bits are told on stderr, so that a test sees that they have come through.
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <CL/cl_icd.h>
#include <CL/cl_layer.h>
#include <stdio.h>
#include <string.h>

static const char kName[] = "cl_khr_initialize_memory ";
enum { kMostProperties = 64 };

static struct _cl_icd_dispatch dispatch;
static const struct _cl_icd_dispatch* driver;

static cl_int CL_API_CALL GetDeviceInfo(cl_device_id device, cl_device_info name, size_t room,
                                        void* value, size_t* size_ret) {
  size_t size = 0;
  if (name != CL_DEVICE_EXTENSIONS)
    return driver->clGetDeviceInfo(device, name, room, value, size_ret);
  cl_int status = driver->clGetDeviceInfo(device, name, 0, NULL, &size);
  if (status != CL_SUCCESS) return status;
  const size_t more = strlen(kName);
  if (size_ret != NULL) *size_ret = size + more;
  if (value == NULL) return CL_SUCCESS;
  if (room < size + more) return CL_INVALID_VALUE;
  memcpy(value, kName, more);
  return driver->clGetDeviceInfo(device, name, size, (char*)value + more, NULL);
}

static cl_context CL_API_CALL CreateContext(
    const cl_context_properties* properties, cl_uint count, const cl_device_id* devices,
    void(CL_CALLBACK* notify)(const char*, const void*, size_t, void*), void* data, cl_int* error) {
  cl_context_properties kept[kMostProperties + 1];
  size_t length = 0;
  for (; properties != NULL && properties[0] != 0 && length < kMostProperties; properties += 2) {
    if (properties[0] == CL_CONTEXT_MEMORY_INITIALIZE_KHR) {
      fprintf(stderr, "memory_layer: CL_CONTEXT_MEMORY_INITIALIZE_KHR %d\n", (int)properties[1]);
      continue;
    }
    kept[length++] = properties[0];
    kept[length++] = properties[1];
  }
  kept[length] = 0;
  return driver->clCreateContext(kept, count, devices, notify, data, error);
}

cl_int CL_API_CALL clGetLayerInfo(cl_layer_info name, size_t room, void* value, size_t* size_ret) {
  const cl_layer_api_version version = CL_LAYER_API_VERSION_100;
  if (name != CL_LAYER_API_VERSION) return CL_INVALID_VALUE;
  if (size_ret != NULL) *size_ret = sizeof(version);
  if (value == NULL) return CL_SUCCESS;
  if (room < sizeof(version)) return CL_INVALID_VALUE;
  memcpy(value, &version, sizeof(version));
  return CL_SUCCESS;
}

cl_int CL_API_CALL clInitLayer(cl_uint entries, const cl_icd_dispatch* target, cl_uint* entries_ret,
                               const cl_icd_dispatch** layer) {
  const size_t all = sizeof(dispatch) / sizeof(void*);
  memcpy(&dispatch, target, (entries < all ? entries : all) * sizeof(void*));
  dispatch.clGetDeviceInfo = &GetDeviceInfo;
  dispatch.clCreateContext = &CreateContext;
  driver = target;
  *entries_ret = (cl_uint)all;
  *layer = &dispatch;
  return CL_SUCCESS;
}
