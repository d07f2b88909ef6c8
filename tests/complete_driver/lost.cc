// SPDX-License-Identifier: Apache-2.0
// A device that is lost and comes back. As long as there is a file of the name that
// COMPLETE_DRIVER_LOST says, new processes see no device, and those that have one get no more out
// of it.
#include <sys/stat.h>

#include <cstdlib>

#include "tests/complete_driver/complete_driver.h"

namespace sluice::complete_driver {
namespace {

cl_icd_dispatch g_before;  // The table as it was.

using Notify = void(CL_CALLBACK*)(const char*, const void*, size_t, void*);

bool IsLost() {
  static const char* const file = std::getenv("COMPLETE_DRIVER_LOST");
  struct stat info;
  return file != nullptr && ::stat(file, &info) == 0;
}

cl_int CL_API_CALL LosableGetDeviceIDs(cl_platform_id platform, cl_device_type type, cl_uint room,
                                       cl_device_id* devices, cl_uint* count) {
  if (IsLost()) return CL_DEVICE_NOT_FOUND;
  return g_before.clGetDeviceIDs(platform, type, room, devices, count);
}

cl_context CL_API_CALL LosableCreateContext(const cl_context_properties* properties, cl_uint count,
                                            const cl_device_id* devices, Notify notify, void* user,
                                            cl_int* status) {
  if (!IsLost()) return g_before.clCreateContext(properties, count, devices, notify, user, status);
  if (status != nullptr) *status = CL_DEVICE_NOT_AVAILABLE;
  return nullptr;
}

cl_int CL_API_CALL LosableFinish(cl_command_queue queue) {
  return IsLost() ? CL_OUT_OF_RESOURCES : g_before.clFinish(queue);
}

cl_int CL_API_CALL LosableEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel,
                                               cl_uint dimensions, const size_t* offset,
                                               const size_t* global, const size_t* local,
                                               cl_uint waits, const cl_event* list,
                                               cl_event* event) {
  if (IsLost()) return CL_OUT_OF_RESOURCES;
  return g_before.clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local, waits,
                                         list, event);
}

}  // namespace

void ReplaceWhatLosesDevices(cl_icd_dispatch* table) {
  if (std::getenv("COMPLETE_DRIVER_LOST") == nullptr) return;
  g_before = *table;
  table->clGetDeviceIDs = &LosableGetDeviceIDs;
  table->clCreateContext = &LosableCreateContext;
  table->clFinish = &LosableFinish;
  table->clEnqueueNDRangeKernel = &LosableEnqueueNDRangeKernel;
}

}  // namespace sluice::complete_driver
