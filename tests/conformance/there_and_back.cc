// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/there_and_back.h"

namespace sluice::conformance {

cl_int ThereAndBack(cl_device_id device, cl_int number) {
  const Own<cl_context> context(clCreateContext(nullptr, 1, &device, nullptr, nullptr, nullptr));
  if (context.get() == nullptr) return -1;
  const Own<cl_command_queue> queue(
      clCreateCommandQueueWithProperties(context, device, nullptr, nullptr));
  const Own<cl_mem> buffer(
      clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof(number), nullptr, nullptr));
  cl_int back = -1;
  if (clEnqueueFillBuffer(queue, buffer, &number, sizeof(number), 0, sizeof(number), 0, nullptr,
                          nullptr) != CL_SUCCESS ||
      clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof(back), &back, 0, nullptr, nullptr) !=
          CL_SUCCESS) {
    return -1;
  }
  return back;
}

}  // namespace sluice::conformance
