// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/memory/zero_fill.h"

#include <algorithm>
#include <utility>

#include "daemon/worker/driver.h"
#include "daemon/worker/objects.h"
#include "daemon/worker/queues/completions.h"

namespace sluice::worker {
namespace {

// From here on the allocation may fail for want of memory.
constexpr uint64_t kMostOwedBytes = uint64_t{1} << 20;

}  // namespace

void OwedZeros::Define(const std::shared_ptr<CompletionLane>& queue, UniqueCl<cl_event> event) {
  const auto same = [&](const Definition& one) { return one.queue == queue; };
  auto one = std::find_if(defined.begin(), defined.end(), same);
  if (one == defined.end()) {
    // Of queues that are gone, and that nobody has waited for since.
    std::erase_if(defined,
                  [](const Definition& old) { return StatusOf(old.event.get()) == CL_COMPLETE; });
    one = defined.insert(defined.end(), {queue, {}, 0});
  }
  one->event = std::move(event);
  one->number = ++last_number;
}

cl_int OweZeros(MemoryObject* memory) {
  OwedZeros& zeros = memory->context->zeros;
  if (memory->size <= kMostOwedBytes) {
    zeros.owed.insert(memory);
    memory->owes_zeros = true;
    return CL_SUCCESS;
  }
  zeros.untold = true;
  return EnqueueZeros(memory->context->own_queue.get(), memory->handle.get(), memory->size);
}

cl_int PayZeros(ContextObject* context) {
  OwedZeros& zeros = context->zeros;
  if (zeros.owed.empty() && !zeros.untold) return CL_SUCCESS;
  const cl_command_queue queue = context->own_queue.get();
  zeros.untold = true;
  while (!zeros.owed.empty()) {
    MemoryObject& memory = **zeros.owed.begin();
    const cl_int status = EnqueueZeros(queue, memory.handle.get(), memory.size);
    if (status != CL_SUCCESS) return status;
    TakePlaceOfZeros(&memory);
  }
  UniqueCl<cl_event> filled;
  const cl_int status = cl().clEnqueueMarkerWithWaitList(queue, 0, nullptr, filled.out());
  if (status != CL_SUCCESS) return status;
  // Section 5.15: other queues may wait for the event only once it is flushed.
  cl().clFlush(queue);
  zeros.untold = false;
  zeros.Define(nullptr, std::move(filled));
  return CL_SUCCESS;
}

void TakePlaceOfZeros(MemoryObject* memory) {
  memory->context->zeros.owed.erase(memory);
  memory->owes_zeros = false;
}

cl_int EnqueueZeros(cl_command_queue queue, cl_mem buffer, size_t bytes) {
  // Not with a pattern of one byte: a driver may take eight times as long, and 2 GiB into a buffer
  // it fails, and the context with it. The host may have no access to write with, so that what is
  // left over is copied.
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
