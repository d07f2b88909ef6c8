// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/memory/zero_fill.h"

#include "daemon/worker/driver.h"

namespace sluice::worker {

cl_int EnqueueZeros(cl_command_queue queue, cl_mem buffer, size_t bytes) {
  // Not with a pattern of one byte: a driver may take eight times as long, and
  // 2 GiB into a buffer it fails, and the context with it. The host may have no access to write
  // with, so that what is left over is copied.
  constexpr cl_uchar kZeros[16] = {};
  const size_t rest = bytes % sizeof(kZeros);
  const size_t whole = bytes - rest;
  if (whole == 0)
    return cl().clEnqueueFillBuffer(queue, buffer, kZeros, 1, 0, rest, 0, nullptr, nullptr);
  const cl_int status = cl().clEnqueueFillBuffer(queue, buffer, kZeros, sizeof(kZeros), 0, whole, 0,
                                                 nullptr, nullptr);
  if (status != CL_SUCCESS || rest == 0) return status;
  return cl().clEnqueueCopyBuffer(queue, buffer, buffer, 0, whole, rest, 0, nullptr, nullptr);
}

}  // namespace sluice::worker
