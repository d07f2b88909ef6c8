// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/harness/there_and_back.h"

#include <cstdio>

namespace sluice::conformance {
namespace {

// A process that ends with a number cannot say more otherwise.
cl_int NotBack(const char* what, cl_int status) {
  std::fprintf(stderr, "ThereAndBack: %s gives %d\n", what, status);
  return -1;
}

}  // namespace

cl_int ThereAndBack(cl_device_id device, cl_int number) {
  cl_int status = CL_SUCCESS;
  const Own<cl_context> context(clCreateContext(nullptr, 1, &device, nullptr, nullptr, &status));
  if (context.get() == nullptr) return NotBack("clCreateContext", status);
  const Own<cl_command_queue> queue(
      clCreateCommandQueueWithProperties(context, device, nullptr, nullptr));
  const Own<cl_mem> buffer(
      clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof(number), nullptr, nullptr));
  cl_int back = -1;
  status = clEnqueueFillBuffer(queue, buffer, &number, sizeof(number), 0, sizeof(number), 0,
                               nullptr, nullptr);
  if (status != CL_SUCCESS) return NotBack("clEnqueueFillBuffer", status);
  status = clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof(back), &back, 0, nullptr, nullptr);
  return status == CL_SUCCESS ? back : NotBack("clEnqueueReadBuffer", status);
}

}  // namespace sluice::conformance
